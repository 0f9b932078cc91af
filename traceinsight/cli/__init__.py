"""The command line: one module per command, errors turned into messages in ``main``."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code (0 done, 1 our bug, 2 usage, 3 unreadable input)."""
    from traceinsight.cli.entry import run  # noqa: PLC0415 - `import traceinsight.cli` stays free of typer

    return run(arguments)


__all__ = ["main"]
