"""From recordings to a ``TraceSet``: derive per rank, match across ranks, put all on one clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from traceinsight.base.collective_names import SYNCHRONISING
from traceinsight.base.notes import DataNote
from traceinsight.trace.annotations import AnnotationIndex
from traceinsight.trace.clocks import ClockOffset, Meeting, estimate_offsets
from traceinsight.trace.collectives import find_collectives, launches_device_work
from traceinsight.trace.launches import launch_of_gpu_events
from traceinsight.trace.lost_work import lost_shares
from traceinsight.trace.matching import Match, is_nameless, match_collectives
from traceinsight.trace.rank_trace import CLEAN_LOST_SHARE, RankTrace
from traceinsight.trace.recording import Recording
from traceinsight.trace.steady_state import steady_steps
from traceinsight.trace.steps import find_steps
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

T = TypeVar("T")


def derive_rank(recording: Recording, rank: int) -> RankTrace:
    """Everything that follows from one rank alone."""
    launch = launch_of_gpu_events(recording)
    annotations = AnnotationIndex(recording)
    steps = find_steps(recording, launch)
    collectives = find_collectives(recording, launch, annotations, steps)
    return RankTrace(
        rank=rank,
        recording=recording,
        launch=launch,
        drives_accelerator=launches_device_work(recording),
        lost_shares=lost_shares(recording, launch, steps),
        set_aside=False,
        annotations=annotations,
        steps=steps,
        collectives=collectives,
    )


def assemble(
    recordings: Sequence[Recording],
    *,
    manifest: Mapping[str, object] | None = None,
    notes: Sequence[DataNote] = (),
) -> TraceSet:
    """Build the trace set of one run.

    Raises:
        ValueError: If ``recordings`` is empty or two of them claim the same rank.

    """
    ranks, rank_notes = _numbered(recordings)
    derived = [derive_rank(recording, rank) for rank, recording in sorted(ranks.items())]
    traces, lossy_notes = _set_lossy_aside(derived)
    groups = _configured_groups(recordings)
    matches = _matches(traces, groups)
    clocks = estimate_offsets([trace.rank for trace in traces], _meetings(matches))
    world_size, world_notes = _world_size(traces)
    matched = tuple(_on_common_clock(match, clocks, world_size) for match in matches)
    steps, dropped, step_notes = steady_steps(traces)
    return TraceSet(
        ranks=traces,
        world_size=world_size,
        missing_ranks=tuple(sorted(set(range(world_size or 0)) - set(ranks))),
        backend=_agreed([trace.recording.backend for trace in traces]),
        device=_device(traces),
        steps=steps,
        dropped_steps=dropped,
        step_source=_agreed([trace.steps.source for trace in traces]) or "none",
        clocks=clocks,
        collectives=matched,
        manifest=manifest,
        notes=(
            *notes,
            *rank_notes,
            *world_notes,
            *lossy_notes,
            *step_notes,
            *_nameless_notes(matches, len(groups)),
            *(note for trace in traces for note in trace.recording.notes),
        ),
    )


def matched_on_clock(
    traces: Sequence[RankTrace], clocks: Mapping[int, ClockOffset], world_size: int | None
) -> tuple[MatchedCollective, ...]:
    """The collectives of these ranks, matched anew by clocks that are known already."""
    matches = _matches(traces, _configured_groups([trace.recording for trace in traces]))
    return tuple(_on_common_clock(match, clocks, world_size) for match in matches)


def _matches(traces: Sequence[RankTrace], groups: frozenset[frozenset[int]]) -> list[Match]:
    return match_collectives({trace.rank: trace.collectives for trace in traces}, groups)


def _configured_groups(recordings: Sequence[Recording]) -> frozenset[frozenset[int]]:
    """The different sets of two and more ranks that the job formed process groups of."""
    every = (frozenset(group.ranks) for recording in recordings for group in recording.process_groups)
    return frozenset(ranks for ranks in every if len(ranks) > 1)


def _nameless_notes(matches: Sequence[Match], groups: int) -> list[DataNote]:
    """That collectives could not be matched because nothing tells which of several groups ran them.

    A few launched before the capture are so in every trace; only a run without any other is worth a note.
    """
    nameless = [all(is_nameless(part) for part in match.parts.values()) for match in matches]
    ranks = {rank for match in matches for rank in match.parts}
    if groups < 2 or len(ranks) < 2 or not all(nameless):
        return []
    message = (
        f"The collectives do not name their process group and the job has {groups}: which ranks met in which "
        "is not known, so they are not matched, and waiting and transfer are not told apart."
    )
    return [DataNote("warning", "nameless-collectives", message, count=len(matches))]


def _set_lossy_aside(traces: Sequence[RankTrace]) -> tuple[tuple[RankTrace, ...], list[DataNote]]:
    """Ranks that lost device work in every step must not stand for the job where other ranks can."""
    lossy = [trace for trace in traces if min(trace.lost_shares, default=0.0) > CLEAN_LOST_SHARE]
    if len(lossy) == len(traces):
        return tuple(traces), []
    aside = {trace.rank for trace in lossy}
    notes = [
        DataNote(
            "error",
            "lost-gpu-work",
            (
                f"Rank {trace.rank} lost {min(trace.lost_shares):.0%} or more of its GPU work in every step"
                if trace.has_gpu
                else f"Rank {trace.rank}'s file is cut off, so any step may lack work"
            )
            + "; its device time is left out.",
            trace.rank,
            trace.recording.file,
        )
        for trace in lossy
    ]
    return tuple(replace(trace, set_aside=trace.rank in aside) for trace in traces), notes


def _world_size(traces: Sequence[RankTrace]) -> tuple[int | None, list[DataNote]]:
    """The world size most ranks name, unless a rank lies outside of it."""
    named = _agreed([trace.recording.world_size for trace in traces])
    highest = max(trace.rank for trace in traces)
    if named is None or highest < named:
        return named, []
    message = f"Rank {highest} does not fit a world of {named} ranks; the world size is taken as unknown."
    return None, [DataNote("warning", "rank-outside-world", message, highest)]


def _numbered(recordings: Sequence[Recording]) -> tuple[dict[int, Recording], list[DataNote]]:
    """Every recording under a rank; the unranked ones take the free numbers from 0 up, and that is noted."""
    if not recordings:
        raise ValueError("a trace set needs at least one recording")
    ranks: dict[int, Recording] = {}
    for recording in recordings:
        if recording.rank is not None:
            if recording.rank in ranks:
                raise ValueError(f"two recordings claim rank {recording.rank}")
            ranks[recording.rank] = recording
    notes = []
    free = (number for number in range(len(recordings) + len(ranks)) if number not in set(ranks))
    for recording in [one for one in recordings if one.rank is None]:
        rank = next(free)
        ranks[rank] = replace(recording, _cache={})
        message = f"Nothing in the file or its name tells the rank; it is shown as rank {rank}."
        notes.append(DataNote("warning", "rank-unknown", message, rank, recording.file))
    return ranks, notes


def _agreed(values: Sequence[T | None]) -> T | None:
    """The most frequent known value."""
    known = Counter(value for value in values if value is not None)
    return known.most_common(1)[0][0] if known else None


def _device(traces: Sequence[RankTrace]) -> str | None:
    """The GPU the ranks ran on: the device their kernels name, else the only kind there is."""
    names = []
    for trace in traces:
        used = {lane.device for lane in trace.recording.lanes if lane.device is not None}
        by_ordinal = {device.ordinal: device.name for device in trace.recording.devices}
        names += [by_ordinal[ordinal] for ordinal in used if ordinal in by_ordinal]
        if trace.device_recorded and not trace.has_gpu:
            names.append("CPU")
    return _agreed(names)


def _meetings(matches: Sequence[Match]) -> list[Meeting]:
    return [
        Meeting(tuple(match.parts), tuple(part.end_ns for part in match.parts.values()))
        for match in matches
        if match.operation in SYNCHRONISING and len(match.parts) > 1
    ]


def _on_common_clock(
    match: Match, clocks: Mapping[int, ClockOffset], world_size: int | None
) -> MatchedCollective:
    known = match.group is not None or world_size is not None
    expected = match.group if match.group is not None else range(world_size or len(clocks))
    shift = {rank: clocks[rank].offset_ns or 0 for rank in match.parts}
    return MatchedCollective(
        operation=match.operation,
        label=match.label,
        phase=match.phase,
        step=match.step,
        group=match.group,
        ranks=tuple(match.parts),
        members=tuple(match.parts.values()),
        starts_ns=tuple(part.start_ns - shift[rank] for rank, part in match.parts.items()),
        ends_ns=tuple(part.end_ns - shift[rank] for rank, part in match.parts.items()),
        absent_ranks=tuple(sorted(set(expected) - set(match.parts))),
        membership_known=known or len(match.parts) > 1,
    )
