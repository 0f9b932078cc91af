"""``python -m training.doctor``: check that the installed stack fits together and say what to change.

Exit status: 0 nothing is wrong (unknown things may remain), 1 a problem was found, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path

from training.doctor_checks import PROBLEM, WARNING, Finding, Table, check
from training.doctor_facts import Facts, collect, metadata

TABLE = Path(__file__).with_name("known_good.toml")
_said: set[Finding] = set()
"""What this process has said: a run looks twice, before and after the imports."""


def known_good() -> Table:
    """Return the table of known-good sets."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def describe(finding: Finding, columns: int = 80) -> str:
    """Return a finding in lines of at most ``columns``, with what to do in lines of its own."""
    lines = _wrapped(f"{finding.level:8} {finding.what}", " " * 9, columns)
    if finding.change:
        lines += _wrapped(f"{'':8} -> {finding.change}", " " * 12, columns)
    return "\n".join(lines)


def _wrapped(text: str, indent: str, columns: int) -> list[str]:
    # A command or a version that is cut in two cannot be copied.
    return textwrap.wrap(
        text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def main(arguments: Sequence[str] = ()) -> int:
    """Print every finding; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m training.doctor",
        description="Check that PyTorch, TorchRec, FBGEMM, Triton, CUDA, NCCL and aws-ofi-nccl fit together, "
        "and say what to change. Looks at this machine and this Python only; changes and starts nothing.",
        epilog="Exit status: 0 nothing is wrong, 1 a problem was found. The known-good sets are in "
        f"training/{TABLE.name}.",
    )
    parser.parse_args(arguments)
    findings = check(collect(), known_good())
    columns = shutil.get_terminal_size().columns
    for finding in findings:
        print(describe(finding, columns))
    problems = sum(finding.level == PROBLEM for finding in findings)
    print(f"{problems} problem(s)" if problems else "no problem found")
    return 1 if problems else 0


def warn(facts: Facts | None = None) -> None:
    """Say at the start of a run what looks wrong and was not said. Nothing is stopped: the run will tell.

    Without ``facts`` everything is looked at, which imports the stack.
    """
    for finding in check(facts or collect(), known_good()):
        if finding.level in (PROBLEM, WARNING) and finding not in _said:
            _said.add(finding)
            sys.stderr.write(f"training.doctor:\n{describe(finding)}\n")


def warn_before_imports() -> None:
    """Say what the versions alone tell, before a stack that does not fit is imported and perhaps crashes."""
    warn(metadata())


def explain_import(error: Exception) -> None:
    """Say why the stack cannot be imported and what to change; ``error`` is what importing it raised."""
    facts = collect()
    sys.stderr.write(f"error: the training stack cannot be imported ({type(error).__name__}: {error})\n")
    if facts.import_errors or any(found.level == PROBLEM for found in check(facts, known_good())):
        warn(facts)
        sys.stderr.write("python -m training.doctor shows this again\n")
        return
    raise error  # PyTorch, TorchRec and FBGEMM are in order: the error is this program's own


def missing() -> list[Finding]:
    """Return what to say of a stack of which a part is not installed at all; imports nothing."""
    facts = metadata()
    return [one for one in check(facts, known_good()) if one.level == PROBLEM] if facts.import_errors else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
