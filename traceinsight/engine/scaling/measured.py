"""What the comparison needs of one run, so that a large diagnosis need not be kept for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traceinsight.base.statistics import median
from traceinsight.diagnosis import Diagnosis, Partition, typical_step_ns
from traceinsight.diagnosis.scaling import PARTS, ScalingNote, StepParts

_MOST_COUNT = 2**53
"""Counts in a manifest beyond this are no counts, and would not fit a float."""

_MOST_QUOTED = 40

NEARLY_SPLIT_SHARE = 0.01
"""A step with at most this share of its windows unsplit counts as split; so little changes no answer."""

_NO_STEPS = ("whole recording", "none")
"""Sources of steps that found none: a recording of any length would count as one step."""

_SETTINGS = ("qcomms", "parallelism", "pipeline", "compile", "versions")
"""Fields of a manifest that should be equal in runs that differ in size only."""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run in a few numbers; ``world_size`` and ``step_ns`` are None where they cannot be told.

    ``settings`` are what the runs should share: name -> value, absent where it is not known.
    """

    name: str
    world_size: int | None
    nodes: int | None
    batch_per_rank: int | None
    ranks_read: int
    steps: int
    device: str | None
    simulated: bool
    step_ns: int | None
    parts: StepParts | None
    settings: Mapping[str, object]
    notes: tuple[ScalingNote, ...]


def measure(name: str, diagnosis: Diagnosis, manifest: Mapping[str, object] | None) -> MeasuredRun:
    """Reduce a diagnosis. ``manifest`` is the run's ``run.json``, untrusted like everything read."""
    facts = manifest or {}
    world, notes = _world_size(name, diagnosis, facts)
    nodes = facts.get("nodes")
    step_ns = _step_ns(diagnosis) if diagnosis.run.step_source not in _NO_STEPS else None
    return MeasuredRun(
        name=name,
        world_size=world,
        nodes=len(nodes) if isinstance(nodes, list) and nodes and len(nodes) <= (world or 0) else None,
        batch_per_rank=_count(facts.get("batch_per_rank")),
        ranks_read=len(diagnosis.run.ranks),
        steps=len(diagnosis.run.steps),
        device=diagnosis.run.device,
        simulated=diagnosis.run.simulated,
        step_ns=step_ns,
        parts=_parts(diagnosis, step_ns) if diagnosis.partition and step_ns else None,
        settings=_settings(diagnosis, facts),
        notes=(*notes, *_no_counts(name, facts), *_quality(name, diagnosis)),
    )


def apportion(weights: Sequence[int], total: int) -> list[int]:
    """Whole numbers in proportion to ``weights`` (not negative, not all 0) that sum to ``total`` exactly.

    The largest remainders are rounded up.
    """
    whole = sum(weights)
    shares = [divmod(weight * total, whole) for weight in weights]
    missing = total - sum(share for share, _ in shares)
    by_remainder = sorted(range(len(shares)), key=lambda at: (-shares[at][1], at))
    raised = set(by_remainder[:missing])
    return [share + (at in raised) for at, (share, _) in enumerate(shares)]


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= _MOST_COUNT else None


def _no_counts(name: str, facts: Mapping[str, object]) -> list[ScalingNote]:
    """What the manifest gives as a number of ranks or examples and cannot be one."""
    return [
        ScalingNote(
            severity="warning",
            code="unusable-manifest",
            message=f"run.json gives {repr(facts[field])[:_MOST_QUOTED]} for {field}, which cannot be; "
            "not used.",
            runs=[name],
        )
        for field in ("world_size", "batch_per_rank")
        if facts.get(field) is not None and _count(facts[field]) is None
    ]


def _world_size(
    name: str, diagnosis: Diagnosis, facts: Mapping[str, object]
) -> tuple[int | None, list[ScalingNote]]:
    """The traces' world size, else the manifest's, else 1 for a process that never communicates."""
    traced, written = diagnosis.run.world_size, _count(facts.get("world_size"))
    if traced is not None:
        if written is None or written == traced:
            return traced, []
        message = f"run.json says {written:,} ranks, the traces say {traced:,}; the traces count."
        return traced, [ScalingNote(severity="warning", code="world-size", message=message, runs=[name])]
    if written is not None:
        return written, []
    alone = len(diagnosis.run.ranks) == 1 and not diagnosis.collectives
    if alone and diagnosis.partition:
        message = "taken as one rank: a single trace without any communication."
        return 1, [ScalingNote(severity="info", code="world-size", message=message, runs=[name])]
    return None, []


def _step_ns(diagnosis: Diagnosis) -> int | None:
    """Median step window over ranks and steady steps; between CPU marks where no device was recorded."""
    typical = typical_step_ns(diagnosis.partition)
    if typical is None:
        steady = set(diagnosis.run.steps)
        lengths = [
            row.cpu_ns for row in diagnosis.step_times if row.step in steady and row.cpu_ns is not None
        ]
        typical = median(lengths) if lengths else 0.0
    return round(typical) or None


def _parts(diagnosis: Diagnosis, step_ns: int) -> StepParts | None:
    """The step cut like the windows of all ranks and steps together."""
    sync = {
        (row.rank, row.step): row.exposed_transfer_ns or 0
        for row in diagnosis.phases
        if row.phase == "replica_sync"
    }
    sums = dict.fromkeys(PARTS, 0)
    for row in _windows_to_cut(diagnosis):
        for part, length_ns in _of_window(row, sync.get((row.rank, row.step), 0)).items():
            sums[part] += length_ns
    if not any(sums.values()):
        return None
    cut = apportion([sums[part] for part in PARTS], step_ns)
    return StepParts(**{f"{part}_ns": length for part, length in zip(PARTS, cut, strict=True)})


def _windows_to_cut(diagnosis: Diagnosis) -> Sequence[Partition]:
    """Those of the steps whose communication could be split, where they are the most; else all.

    Device work that was launched before the capture runs into its first steps, and cannot be matched there.
    With missing ranks no step is special, and choosing some would drop what the missing ranks take part in.
    """
    unsplit: dict[int, int] = defaultdict(int)
    window: dict[int, int] = defaultdict(int)
    for row in diagnosis.partition:
        unsplit[row.step] += row.exposed_comm_unsplit_ns
        window[row.step] += row.window_ns
    split = {step for step in window if unsplit[step] <= NEARLY_SPLIT_SHARE * window[step]}
    if diagnosis.run.missing_ranks or 2 * len(split) < len(window):
        return diagnosis.partition
    return [row for row in diagnosis.partition if row.step in split]


def _of_window(row: Partition, sync_ns: int) -> dict[str, int]:
    replica_sync_ns = min(sync_ns, row.exposed_comm_transfer_ns)
    return {
        "compute": row.compute_ns,
        "transfer": row.exposed_comm_transfer_ns - replica_sync_ns,
        "wait": row.exposed_comm_wait_ns,
        "replica_sync": replica_sync_ns,
        "unsplit": row.exposed_comm_unsplit_ns,
        "copy": row.exposed_copy_ns,
        "idle": row.idle_ns,
    }


def _settings(diagnosis: Diagnosis, facts: Mapping[str, object]) -> dict[str, object]:
    known = {name: facts[name] for name in _SETTINGS if facts.get(name) is not None}
    versions = known.get("versions")
    if isinstance(versions, dict):
        known["versions"] = {name: text for name, text in versions.items() if name != "traceinsight"}
    known["formats on the wire"] = diagnosis.run.quantized_comms
    if diagnosis.run.backend is not None:
        known["backend"] = diagnosis.run.backend
    return known


def _quality(name: str, diagnosis: Diagnosis) -> list[ScalingNote]:
    """What of one run's capture bears on the comparison."""
    run = diagnosis.run
    found = []
    if run.missing_ranks:
        found.append(
            (
                "missing-ranks",
                f"{len(run.missing_ranks):,} of {run.world_size or 0:,} ranks were not captured; where they "
                "take part, waiting cannot be told from transfer (unsplit).",
            )
        )
    if len(run.steps) < 2:
        found.append(("one-step", "fewer than two steps: how much a step varies is not known."))
    if run.other_runs:
        message = f"{len(run.other_runs) + 1:,} runs were found there; the newest is used. Name one folder."
        found.append(("several-runs", message))
    if not diagnosis.partition:
        found.append(("no-device", "no device activity: the step is that of the host, and has no parts."))
    lost = sum(note.severity == "error" for note in diagnosis.data_quality)
    if lost:
        message = f"data was lost ({lost:,} notes); see traceinsight analyze."
        found.append(("data-lost", message))
    return [
        ScalingNote(severity="warning", code=code, message=message, runs=[name]) for code, message in found
    ]
