"""Write docs/rules/ from the rules: one page each, and the list of all.

``python docs/generate_rules_md.py`` writes the pages; with ``--check`` it writes nothing and fails when one
is stale or belongs to no rule. A page is the docstring of the rule's module and the thresholds that decide
it, each with the reason that stands below it in the code.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from traceinsight.advice.registry import RULES
from traceinsight.advice.rule import Rule

FOLDER = Path(__file__).parent / "rules"

MEASURED_BY = {
    "straggler": (
        "traceinsight.analyses.stragglers.judge",
        "traceinsight.analyses.stragglers.suspects",
        "traceinsight.analyses.stragglers.arrivals",
        "traceinsight.analyses.stragglers.freed",
    ),
    **dict.fromkeys(
        (
            "exposed-all-to-all",
            "unquantized-exchange",
            "wide-embeddings",
            "small-batch",
            "unpipelined-exchange",
        ),
        ("traceinsight.advice.exchanges",),
    ),
    **dict.fromkeys(
        ("slow-network-path", "nccl-sockets", "cross-node-all-to-all"),
        ("traceinsight.advice.exchanges", "traceinsight.advice.nodes"),
    ),
    "slow-link": ("traceinsight.analyses.host_link",),
    "host-bound": ("traceinsight.analyses.partition.idle",),
}
"""Where a rule's verdict rests on thresholds of the analysis below it, these belong on its page too."""

_NOTE = "<!-- Written by docs/generate_rules_md.py; change the rule's module instead. -->"
_SEVERITY = "traceinsight.advice.rule"


@dataclass(frozen=True)
class Threshold:
    """A public constant with its value as the code spells it and the reason below it."""

    name: str
    value: str
    reason: str


def sections(rule: Rule) -> dict[str, str]:
    """The docstring's sections by heading; the first, under an empty heading, is its opening sentence."""
    doc = inspect.getdoc(importlib.import_module(rule.judge.__module__)) or ""
    found: dict[str, list[str]] = {"": []}
    for line in doc.splitlines():
        if found[""] and line and not line.startswith(" "):
            found[line] = []
        else:
            found[list(found)[-1]].append(line.strip())
    return {heading: _markdown(" ".join(lines)) for heading, lines in found.items()}


def thresholds(rule: Rule) -> list[Threshold]:
    """What decides the rule: its own constants, then those of the analysis it rests on."""
    own = rule.judge.__module__
    return [one for module in (own, *MEASURED_BY.get(rule.id, ())) for one in constants(module)]


def constants(module_name: str) -> list[Threshold]:
    """The public numeric constants of a module, in order."""
    body = ast.parse(inspect.getsource(importlib.import_module(module_name))).body
    found = []
    for node, below in zip(body, [*body[1:], None], strict=True):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
            continue
        name = ast.unparse(node.targets[0])
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or isinstance(node.value.value, str):
            continue
        said = below.value if isinstance(below, ast.Expr) else None
        text = said.value if isinstance(said, ast.Constant) else ""
        found.append(Threshold(name, ast.unparse(node.value), _markdown(" ".join(str(text).split()))))
    return found


def _markdown(text: str) -> str:
    return text.replace("``", "`").strip()


def page(rule: Rule) -> str:
    """One rule's page."""
    opening, *rest = sections(rule).items()
    parts = [f"# {rule.id}", _NOTE, opening[1]]
    parts += [f"## {heading}\n\n{text}" for heading, text in rest]
    parts.append(f"## Thresholds\n\n{_table(thresholds(rule))}")
    return "\n\n".join(parts) + "\n"


def _table(rows: list[Threshold]) -> str:
    if not rows:
        return "None of its own."
    lines = [f"| `{one.name}` | `{one.value}` | {one.reason} |" for one in rows]
    return "\n".join(["| threshold | value | reason |", "|---|---|---|", *lines])


def index() -> str:
    """The list of all rules."""
    rows = [f"| [{rule.id}]({rule.id}.md) | {rule.summary} |" for rule in RULES]
    return (
        "\n\n".join(
            [
                "# Rules",
                _NOTE,
                "A rule turns measurements into a finding with its evidence, its remedy and what the remedy "
                "can bring at most. Each rule has one of three outcomes: findings, clean, or not judged "
                "because of what the capture lacks. The measurements are defined in "
                "[metrics.md](../metrics.md).",
                "\n".join(["| rule | problem |", "|---|---|", *rows]),
                "## Severity\n\nBy the share of the step at stake; below both it is `minor`.\n\n"
                + _table(constants(_SEVERITY)),
            ]
        )
        + "\n"
    )


def pages() -> dict[str, str]:
    """File name -> text."""
    return {"README.md": index()} | {f"{rule.id}.md": page(rule) for rule in RULES}


def main(arguments: list[str], folder: Path = FOLDER) -> int:
    """Write the pages, or say with the exit code whether they are current."""
    wanted = pages()
    orphans = [path for path in sorted(folder.glob("*.md")) if path.name not in wanted]
    stale = [
        name
        for name, text in wanted.items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text
    ]
    if "--check" in arguments:
        names = stale + [path.name for path in orphans]
        sys.stderr.writelines(
            f"stale: rules/{name}; run python docs/generate_rules_md.py\n" for name in names
        )
        return 1 if names else 0
    folder.mkdir(parents=True, exist_ok=True)
    for path in orphans:
        path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
