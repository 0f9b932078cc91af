"""Write the sample output into README.md, by running the command line on the sample.

``python docs/update_readme.py`` writes it; with ``--check`` it writes nothing and fails when it is stale.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
README = REPOSITORY / "README.md"
SAMPLE = "sample_traces/late_rank"
LAST_SECTION = "Communication by kind"
"""Where the README stops: it shows the answer, not all of the evidence."""

_COMMAND = "import sys; from traceinsight.cli import main; sys.exit(main(sys.argv[1:]))"
_BLOCK = re.compile(r"(<!-- sample-output: .*? -->\n).*?(<!-- /sample-output -->)", re.DOTALL)


def sample_output() -> str:
    """The report of the sample at 80 columns, up to the evidence."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "analyze", SAMPLE],
        cwd=REPOSITORY,
        env=os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout.partition(f"\n{LAST_SECTION}")[0].rstrip()


def updated(readme: str) -> str:
    """The text with its block replaced; ValueError when it has none."""
    if not _BLOCK.search(readme):
        raise ValueError("README.md has no sample-output block")
    block = f"```text\n{sample_output()}\n```\n"
    return _BLOCK.sub(lambda found: f"{found[1]}{block}{found[2]}", readme)


def main(arguments: list[str]) -> int:
    """Write README.md, or say with the exit code whether it is current."""
    current = README.read_text(encoding="utf-8")
    wanted = updated(current)
    if "--check" in arguments:
        if wanted != current:
            sys.stderr.write("README.md is stale; run python docs/update_readme.py\n")
        return int(wanted != current)
    README.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
