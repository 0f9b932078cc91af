"""Reads many files, each in a process of its own where that pays.

Plain child processes instead of a pool: a child that is killed (out of memory) takes only its own file
along, and it does not import the caller's script, so a script without ``if __name__ == "__main__"`` is
safe.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from traceinsight.base.notes import DataNote
from traceinsight.reading.archives import Archives
from traceinsight.reading.limits import MIB
from traceinsight.reading.read_file import FileOutcome, read_file
from traceinsight.reading.sources import Source

MIN_FILE_BYTES = MIB
"""Smaller files are read faster than a process starts."""

MIN_TOTAL_BYTES = 8 * MIB

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from traceinsight.reading.worker import main; main()"
)

Progress = Callable[[int, int, str], None]


def read_all(
    sources: Sequence[Source],
    ranks: Sequence[int | None],
    workers: int | None,
    progress: Progress | None,
) -> list[FileOutcome]:
    """Reads all sources; ``ranks`` and the answers are in their order. A rank that is None is to be found."""
    apart = _worth_a_process(sources) if workers != 1 else []
    outcomes: dict[int, FileOutcome] = {}

    def finish(index: int, outcome: FileOutcome) -> None:
        outcomes[index] = outcome
        if progress:
            progress(len(outcomes), len(sources), sources[index].name)

    count = min(workers or _processors(), len(apart))
    with ThreadPoolExecutor(max(count, 1)) as pool, Archives() as archives:
        running: dict[Future[FileOutcome], int] = {
            pool.submit(_read_apart, sources[index], ranks[index]): index for index in apart
        }
        for index in sorted(set(range(len(sources))) - set(apart)):
            finish(index, read_file(sources[index], ranks[index], archives=archives))
        for future in as_completed(running):
            finish(running[future], future.result())
    return [outcomes[index] for index in range(len(sources))]


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def _worth_a_process(sources: Sequence[Source]) -> list[int]:
    """Large files, biggest first, so that a small one ends last; ``memory://`` is in this process only."""
    large = [
        index
        for index, source in enumerate(sources)
        if source.size >= MIN_FILE_BYTES and not source.path.startswith("memory:")
    ]
    if len(large) < 2 or sum(sources[index].size for index in large) < MIN_TOTAL_BYTES or _processors() < 2:
        return []
    return sorted(large, key=lambda index: -sources[index].size)


def _read_apart(source: Source, rank: int | None) -> FileOutcome:
    job = pickle.dumps((source, rank), protocol=5)
    search_path = [str(Path(entry).absolute()) for entry in sys.path]
    command = [sys.executable, "-c", _START, json.dumps(search_path)]
    try:
        child = subprocess.run(command, input=job, capture_output=True, check=False)
    except (OSError, ValueError):
        return read_file(source, rank)
    if child.returncode < 0:
        message = (
            f"{source.name} was not read: its process was ended by signal {-child.returncode}, "
            "most likely for lack of memory. Read fewer files at a time (workers=1) or capture fewer steps."
        )
        return FileOutcome(source, None, (DataNote("error", "reader-killed", message, file=source.name),))
    try:
        outcome: FileOutcome = pickle.loads(child.stdout)
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError):
        return read_file(source, rank)  # the child could not even start
    return outcome
