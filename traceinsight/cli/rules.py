"""``traceinsight rules``: what the advice rests on."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from itertools import groupby
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from traceinsight.base.errors import UsageError
from traceinsight.base.units import format_share
from traceinsight.cli.result import report_options
from traceinsight.cli.stdout import write_stdout

if TYPE_CHECKING:
    from traceinsight.advice.rule import Rule


def rules(
    rule: Annotated[
        str | None,
        typer.Argument(
            metavar="[RULE]", help="Print all about this rule instead of the list.", show_default=False
        ),
    ] = None,
) -> None:
    """List the rules that judge a run, or explain one.

    [bold]Examples[/bold]

      traceinsight rules
      traceinsight rules straggler
    """
    from traceinsight.advice.registry import RULES  # noqa: PLC0415 - numpy, which --help does not need

    known = {one.id: one for one in RULES}
    if rule is None:
        width = max(map(len, known))
        write_stdout("".join(f"{one.id:<{width}}  {one.summary}\n" for one in RULES))
        return
    if rule not in known:
        raise UsageError(f"there is no rule {rule!r}.", what_to_do=f"Rules: {', '.join(known)}.")
    write_stdout(_explanation(known[rule]))


def _explanation(rule: Rule) -> str:
    """The documentation stands with the code of the rule, so that it cannot drift from it."""
    module = sys.modules[rule.judge.__module__]
    text = _with_values(inspect.getdoc(module) or rule.summary, module)
    # Blank lines and a change of indentation part the paragraphs; within one, the code's lines mean nothing.
    blocks = groupby(text.splitlines(), key=lambda line: (bool(line.strip()), line.startswith(" ")))
    paragraphs = (
        _fitted(" ".join(map(str.strip, lines)), " " * 4 * indented) for (_, indented), lines in blocks
    )
    return f"{rule.id}\n\n{''.join(paragraphs)}"


def _with_values(text: str, module: ModuleType) -> str:
    """Give the thresholds that the text names their values, from the module or those it takes things from."""
    used = {name for thing in vars(module).values() if (name := getattr(thing, "__module__", None))}
    places = [module, *(sys.modules[name] for name in sorted(used) if name in sys.modules)]

    def valued(found: re.Match[str]) -> str:
        name = found[1]
        value = next((vars(place)[name] for place in places if name in vars(place)), None)
        if value is None:
            return name
        return f"{name} ({value:.4g})" if not name.endswith("_SHARE") else f"{name} ({format_share(value)})"

    return re.sub(r"``([A-Z][A-Z0-9_]*)``", valued, text)


def _fitted(text: str, indent: str) -> str:
    width = report_options(to_screen=True, no_color=True, all_ranks=False).width
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent) + "\n"
