"""``python -m training.doctor``: check that the installed stack fits together and say what to change.

Exit status: 0 nothing is wrong (unknown things may remain), 1 a problem was found.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from training.doctor_checks import PROBLEM, WARNING, Finding, Table, check
from training.doctor_facts import collect

TABLE = Path(__file__).with_name("known_good.toml")


def known_good() -> Table:
    """Return the table of known-good sets."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def describe(finding: Finding) -> str:
    """Return a finding as a line, with what to do in a second one."""
    change = f"\n         -> {finding.change}" if finding.change else ""
    return f"{finding.level:8} {finding.what}{change}"


def main() -> int:
    """Print every finding; return the exit status."""
    findings = check(collect(), known_good())
    for finding in findings:
        print(describe(finding))
    problems = sum(finding.level == PROBLEM for finding in findings)
    print(f"{problems} problem(s)" if problems else "no problem found")
    return 1 if problems else 0


def warn() -> None:
    """Say at the start of a run what looks wrong. Nothing is stopped: the run itself will tell."""
    for finding in check(collect(), known_good()):
        if finding.level in (PROBLEM, WARNING):
            sys.stderr.write(f"training.doctor: {describe(finding)}\n")


if __name__ == "__main__":
    sys.exit(main())
