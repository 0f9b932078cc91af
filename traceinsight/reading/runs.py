"""Which files belong to one run.

**The rule.**

1. *Folder.* A folder that holds two or more ranks stands for itself. Such folders are joined only when they
   are parts of one job, as with one folder per node: same parent, no rank in both, overlapping times, and a
   world that is large enough for all. Folders that hold one rank each are pooled with their siblings (one
   folder per rank).
2. *Time.* Inside such a unit, files whose time windows overlap or lie within :data:`MAX_GAP_NS` may be one
   run: the ranks of a run start and end seconds apart, and host clocks differ a little.
3. *World.* In such a stretch, files that name worlds of different sizes and were not captured at the same
   time are of different runs: a smaller job in the folder of a larger one overwrites only its own files.
4. *Rank.* A rank is in a run once. Where a rank has several files in one stretch of time (a schedule that
   repeats, a run restarted at once), the rank with the most files sets the captures, and every other file
   goes to the capture whose start is nearest and that does not have its rank yet.

Files without a rank count as one rank: two of them are never the same run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from traceinsight.reading.result import OtherRun
from traceinsight.trace.recording import EventTable, Recording

MAX_GAP_NS = 30_000_000_000
"""Ranks of one capture begin seconds apart; two captures by hand lie minutes apart."""

_YEAR_2000_NS = 946_684_800_000_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A loaded file with what grouping needs to know."""

    recording: Recording
    directory: str
    start_ns: int
    end_ns: int

    @property
    def rank(self) -> int | None:
        """The rank of the recording."""
        return self.recording.rank


Run = list[Candidate]


def candidate(recording: Recording, directory: str) -> Candidate:
    """Wraps a recording that has events."""
    events = recording.events
    return Candidate(recording, directory, int(events.start_ns.min()), int(events.end_ns.max()))


def group_runs(candidates: Sequence[Candidate]) -> list[Run]:
    """All runs, oldest first; inside a run by rank."""
    runs = [
        run
        for unit in _folder_units(candidates)
        for stretch in _time_stretches(unit)
        for world in _split_by_world(stretch)
        for run in _split_by_rank(world)
    ]
    for run in runs:
        run.sort(key=lambda file: (file.rank is None, file.rank or 0, file.recording.file))
    return sorted(runs, key=lambda run: (min(file.start_ns for file in run), run[0].recording.file))


def without_copies(
    candidates: Sequence[Candidate],
) -> tuple[list[Candidate], list[tuple[Candidate, Candidate]]]:
    """Drops files with the rank and the events of an earlier one; returns (kept, [(copy, original)])."""
    kept: list[Candidate] = []
    copies: list[tuple[Candidate, Candidate]] = []
    by_window: dict[tuple[object, ...], list[Candidate]] = defaultdict(list)
    for file in candidates:
        key = (file.rank, file.start_ns, file.end_ns, len(file.recording.events))
        original = next(
            (other for other in by_window[key] if _same_events(other.recording, file.recording)), None
        )
        if original is None:
            by_window[key].append(file)
            kept.append(file)
        else:
            copies.append((file, original))
    return kept, copies


def _same_events(left: Recording, right: Recording) -> bool:
    if left.strings != right.strings or left.lanes != right.lanes:
        return False
    return all(
        np.array_equal(getattr(left.events, column), getattr(right.events, column))
        for column in EventTable.__dataclass_fields__
    )


def _folder_units(candidates: Sequence[Candidate]) -> list[Run]:
    by_folder: dict[str, Run] = defaultdict(list)
    for file in candidates:
        by_folder[file.directory].append(file)
    pooled: dict[str, Run] = defaultdict(list)
    units: list[Run] = []
    for folder, files in by_folder.items():
        if len({file.rank for file in files}) > 1:
            units.append(files)
        else:
            pooled[_parent(folder)] += files
    return _joined_nodes([*units, *pooled.values()])


def _joined_nodes(units: list[Run]) -> list[Run]:
    joined: list[Run] = []
    for unit in units:
        partner = next((other for other in joined if _parts_of_one_job(other, unit)), None)
        if partner is None:
            joined.append(list(unit))
        else:
            partner += unit
    return joined


def _parts_of_one_job(left: Run, right: Run) -> bool:
    ranks = [{file.rank for file in unit} for unit in (left, right)]
    if None in ranks[0] | ranks[1] or ranks[0] & ranks[1]:
        return False
    if _parent(left[0].directory) != _parent(right[0].directory):
        return False
    worlds = {file.recording.world_size for unit in (left, right) for file in unit}
    world = worlds.pop() if len(worlds) == 1 else None
    if world is None or max(rank or 0 for rank in ranks[0] | ranks[1]) >= world:
        return False
    return _at_once(left, right)


def _window(files: Run) -> tuple[int, int]:
    return min(file.start_ns for file in files), max(file.end_ns for file in files)


def _parent(folder: str) -> str:
    return folder.rpartition("/")[0]


def _time_stretches(files: Run) -> list[Run]:
    stretches: list[Run] = []
    end = 0
    for file in sorted(files, key=lambda file: file.start_ns):
        if stretches and file.start_ns <= end + MAX_GAP_NS:
            stretches[-1].append(file)
            end = max(end, file.end_ns)
        else:
            stretches.append([file])
            end = file.end_ns
    return stretches


def _split_by_world(stretch: Run) -> list[Run]:
    by_world: dict[int | None, Run] = defaultdict(list)
    for file in stretch:
        by_world[file.recording.world_size].append(file)
    unnamed = by_world.pop(None, [])
    groups: list[Run] = []
    for files in by_world.values():
        beside = next((group for group in groups if _at_once(group, files)), None)
        if beside is None:
            groups.append(files)
        else:
            beside += files
    for file in unnamed:  # the stretch they fell into says no more than that they are near
        nearest = min(groups, key=lambda group: abs(_window(group)[0] - file.start_ns), default=None)
        if nearest is None:
            groups.append([file])
        else:
            nearest.append(file)
    return groups


def _at_once(left: Run, right: Run) -> bool:
    return _window(left)[0] <= _window(right)[1] and _window(right)[0] <= _window(left)[1]


def _split_by_rank(stretch: Run) -> list[Run]:
    by_rank: dict[int | None, Run] = defaultdict(list)
    for file in stretch:
        by_rank[file.rank].append(file)
    captures = max(by_rank.values(), key=len)
    runs: list[Run] = [[file] for file in captures]
    for rank, files in by_rank.items():
        if rank == captures[0].rank:
            continue
        free = list(range(len(runs)))
        for file in files:
            nearest = min(free, key=lambda index: abs(captures[index].start_ns - file.start_ns))
            free.remove(nearest)
            runs[nearest].append(file)
    return runs


def describe(run: Run) -> OtherRun:
    """The listing of a run that is not loaded."""
    return OtherRun(
        files=tuple(file.recording.file for file in run),
        ranks=tuple(file.rank for file in run),
        start=start_text(min(file.start_ns for file in run)),
    )


def start_text(start_ns: int) -> str:
    """A date where the clock is the epoch's, else seconds."""
    if start_ns < _YEAR_2000_NS:
        return f"{start_ns / 1e9:.3f} s on the trace's clock"
    return datetime.fromtimestamp(start_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
