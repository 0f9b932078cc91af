"""Facts about the run and its capture."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from traceinsight.advice.measurements import CaptureFacts
from traceinsight.base.labels import INPUT_LABEL, STEP_LABEL
from traceinsight.base.notes import DataNote
from traceinsight.diagnosis import DataQuality, DroppedStep, OtherRun, Run
from traceinsight.trace.recording import MISSING, EventKind, Recording
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

_CODEC = re.compile(r"^## (?:encoder|decoder) (\w+)")
_MOST = 2**40  # examples or ranks; a larger number is no count


def run_facts(trace_set: TraceSet, other_runs: Sequence[OtherRun]) -> Run:
    """Who took part, which steps count, which other runs were found."""
    manifest = trace_set.manifest or {}
    return Run(
        world_size=trace_set.world_size,
        ranks=[trace.rank for trace in trace_set.ranks],
        missing_ranks=list(trace_set.missing_ranks),
        device=trace_set.device,
        backend=trace_set.backend,
        steps=list(trace_set.steps),
        dropped_steps=[DroppedStep(step=drop.step, reason=drop.reason) for drop in trace_set.dropped_steps],
        other_runs=list(other_runs),
        step_source=trace_set.step_source,
        files=[trace.recording.file for trace in trace_set.ranks],
        quantized_comms=sorted({name for trace in trace_set.ranks for name in _codecs(trace.recording)}),
        simulated=is_simulated(trace_set),
        batch_per_rank=count_in(manifest, "batch_per_rank"),
        sharding_group_size=count_in(manifest, "parallelism", "group_size")
        or count_in(manifest, "config", "replicas", "group_size"),
    )


def is_simulated(trace_set: TraceSet) -> bool:
    """Whether the manifest or the header of any rank's trace says so."""
    said = {trace.recording.metadata.get("simulated") for trace in trace_set.ranks}
    return (trace_set.manifest or {}).get("simulated") is True or str(True) in said


def count_in(manifest: Mapping[str, object], *path: str) -> int | None:
    """A positive whole number in the manifest, which anybody may have written; None for anything else."""
    value: object = manifest
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= _MOST else None


def _codecs(recording: Recording) -> set[str]:
    found = set()
    for name in recording.strings:
        match = _CODEC.match(name)
        if match and match[1] != "fp32":
            found.add(match[1])
    return found


def capture_facts(trace_set: TraceSet) -> CaptureFacts:
    """What the capture holds and lacks, over all ranks."""
    recordings = [trace.recording for trace in trace_set.ranks]
    return CaptureFacts(
        device_recorded=frozenset(trace.rank for trace in trace_set.ranks if trace.device_recorded),
        host_recorded=any(len(one.of_kind(EventKind.CPU_OP, EventKind.ANNOTATION)) for one in recordings),
        launches_recorded=not trace_set.has_gpu
        or any(bool(np.any(trace.launch != MISSING)) for trace in trace_set.ranks),
        step_marks=trace_set.step_source == "ProfilerStep",
        input_marks=any(INPUT_LABEL.search(name) for one in recordings for name in one.strings),
        captured_steps=len(trace_set.steps) + len(trace_set.dropped_steps),
        incomplete_collectives=any(
            not one.complete
            for one in trace_set.collectives
            if one.synchronising and one.step in trace_set.steps
        ),
    )


def data_notes(trace_set: TraceSet) -> list[DataNote]:
    """The notes of reading and assembling, and those that only the whole set shows."""
    notes = list(trace_set.notes)
    if trace_set.missing_ranks:
        notes.append(
            DataNote(
                "warning",
                "missing-ranks",
                f"{len(trace_set.missing_ranks)} of {trace_set.world_size} ranks were not captured; where "
                "they take part, waiting cannot be told from transfer.",
                count=len(trace_set.missing_ranks),
            )
        )
    notes += _device_notes(trace_set) + _step_notes(trace_set)
    steady = [one for one in trace_set.collectives if one.step in trace_set.steps]
    lost = Counter(rank for one in steady for rank in _lost_members(one, trace_set))
    for rank, count in sorted(lost.items()):
        notes.append(
            DataNote(
                "warning",
                "unmatched-collective",
                f"{count} collectives of other ranks have no counterpart on rank {rank}; what follows "
                "the last arrival in them is left unsplit.",
                rank,
                count=count,
            )
        )
    return notes


def data_quality(notes: Iterable[DataNote]) -> list[DataQuality]:
    """The notes as a document holds them."""
    return [
        DataQuality(
            severity=note.severity,
            code=note.code,
            message=note.message,
            rank=note.rank,
            file=note.file,
            count=note.count,
        )
        for note in notes
    ]


def _device_notes(trace_set: TraceSet) -> list[DataNote]:
    """A rank that drives several GPUs is shown as one device, and that must be known."""
    notes = []
    for trace in trace_set.ranks:
        used = {lane.device for lane in trace.recording.lanes if lane.device is not None}
        if len(used) > 1:
            message = f"Rank {trace.rank} uses {len(used)} GPUs; they are shown as one device."
            notes.append(DataNote("warning", "several-devices", message, trace.rank, count=len(used)))
    return notes


def _step_notes(trace_set: TraceSet) -> list[DataNote]:
    """Step numbers that occur twice: the first of each is the step, the rest lies inside other steps."""
    notes = []
    for trace in trace_set.ranks:
        recording = trace.recording
        marks = recording.named(
            recording.of_kind(EventKind.ANNOTATION), lambda name: STEP_LABEL.match(name) is not None
        )
        marks = marks[recording.events.lane[marks] == trace.steps.main_lane]
        repeated = len(marks) - len(np.unique(recording.events.name[marks]))
        if repeated:
            message = f"{repeated} step marks of rank {trace.rank} repeat a number; the first of each counts."
            notes.append(DataNote("warning", "repeated-step", message, trace.rank, count=repeated))
    return notes


def _lost_members(one: MatchedCollective, trace_set: TraceSet) -> set[int]:
    """Captured ranks that should hold a part of this collective and do not."""
    captured = {trace.rank for trace in trace_set.ranks if trace.device_recorded}
    return set(one.absent_ranks) & captured if one.synchronising else set()
