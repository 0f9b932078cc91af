"""A progress bar on stderr while traces are read; silent where nobody watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Progress = Callable[[int, int, str], None]


@contextlib.contextmanager
def reading_progress(*, quiet: bool, what: str = "Reading traces") -> Iterator[Progress | None]:
    """Yields what to call with (files done, files in all, current file), or None without a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only where a bar is drawn
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("read", total=None)

        def update(done: int, total: int, _file: str) -> None:
            bar.update(task, completed=done, total=total)

        yield update
