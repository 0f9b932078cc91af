"""The collectives one rank took part in, from kernels (NCCL, RCCL, ...) or from gloo's annotations."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.collective_names import (
    SYNCHRONISING,
    UNKNOWN,
    element_bytes,
    is_communication_kernel,
    operation_of,
)
from traceinsight.base.labels import Phase, without_batch_index
from traceinsight.trace.annotations import LAUNCH_PREFIXES, WORKER_PREFIXES, AnnotationIndex
from traceinsight.trace.rank_trace import RankCollective
from traceinsight.trace.recording import GPU_WORK, MISSING, CommArgs, EventKind, Int64, Recording
from traceinsight.trace.steps import Steps

_NO_ARGS = CommArgs()


@dataclass(frozen=True, slots=True)
class _Context:
    """What the code around a launch says about a collective."""

    operation: str = UNKNOWN
    label: str | None = None
    args: CommArgs = _NO_ARGS
    unexplained: str = "all_to_all"  # what a SendRecv kernel is of which nothing else tells


def communication_kernels(recording: Recording) -> Int64:
    """Indices of the kernels that move data between GPUs, ascending in time."""
    return recording.named(recording.of_kind(EventKind.KERNEL), is_communication_kernel)


def find_collectives(
    recording: Recording, launch: Int64, annotations: AnnotationIndex, steps: Steps
) -> tuple[RankCollective, ...]:
    """All collectives of one rank in order of launch."""
    if recording.has_gpu_work:
        chosen = communication_kernels(recording)
        source = np.where(launch[chosen] != MISSING, launch[chosen], chosen)
        index = np.where(launched_before_recording(recording, launch, chosen), -1, steps.of_event[source])
    else:
        chosen = backend_annotations(recording)
        source = _issuing_operators(recording, chosen)
        index = steps.of_event[source]
    phases = phases_of(recording, annotations, steps, source)
    unexplained = _unexplained_send_recv(recording)
    found = [
        _collective(
            recording,
            _step_number(steps, step),
            event,
            origin,
            phase,
            _context(recording, annotations, origin, unexplained),
        )
        for event, origin, step, phase in zip(
            chosen.tolist(), source.tolist(), index.tolist(), phases, strict=True
        )
    ]
    return tuple(sorted(found, key=lambda one: (one.launch_ns, one.start_ns, one.event)))


def phases_of(recording: Recording, annotations: AnnotationIndex, steps: Steps, source: Int64) -> list[Phase]:
    """The phase of the step in which each of the ``source`` events (launches, CPU operators) starts.

    The thread's own innermost phase annotation decides; a thread without one (autograd's) is in the phase
    that the main thread is in at that moment. Device work that stands for its own lost launch is in none:
    what the host does while it runs, perhaps a step ahead, says nothing of where it came from.
    """
    events = recording.events
    moments = events.start_ns[source]
    own = annotations.phases_at(events.lane[source].astype(np.int64), moments)
    main_lane = MISSING if steps.main_lane is None else steps.main_lane
    main = np.where(np.isin(events.kind[source], GPU_WORK), MISSING, main_lane).astype(np.int64)
    around = annotations.phases_at(main, moments)
    return [mine or there or "other" for mine, there in zip(own, around, strict=True)]


def launched_before_recording(recording: Recording, launch: Int64, chosen: Int64) -> NDArray[np.bool_]:
    """Whether each of the ``chosen`` kernels was queued before the recording began.

    The device may run a step behind the host. A stream runs what it is given in order, so kernels without
    a launch that stand before the first launched one of their stream were given to it earlier.
    """
    events = recording.events
    launched = np.flatnonzero(launch != MISSING)
    first = np.full(int(events.lane.max(initial=-1)) + 1, np.iinfo(np.int64).min, dtype=np.int64)
    for lane in np.unique(events.lane[launched]).tolist():
        first[lane] = events.start_ns[launched[events.lane[launched] == lane]].min()
    early = events.start_ns[chosen] < first[events.lane[chosen]]
    found: NDArray[np.bool_] = early & (launch[chosen] == MISSING)
    return found


def backend_annotations(recording: Recording) -> Int64:
    """Indices of the ``gloo:*`` annotations and their like: a collective as its worker thread ran it."""
    annotations = recording.of_kind(EventKind.ANNOTATION)
    return recording.named(annotations, lambda name: name.startswith(WORKER_PREFIXES))


def launches_device_work(recording: Recording) -> bool:
    """Whether the host drives an accelerator, recorded or not: runtime calls or NCCL launches say so."""
    if len(recording.of_kind(EventKind.RUNTIME)) or recording.backend == "nccl":
        return True
    annotations = recording.of_kind(EventKind.ANNOTATION)
    return len(recording.named(annotations, lambda name: name.startswith(LAUNCH_PREFIXES))) > 0


def _issuing_operators(recording: Recording, chosen: Int64) -> Int64:
    """The ``c10d::*`` operator that queued each of the chosen annotations; itself where none is recorded.

    Gloo's threads take work in the order it was queued, so each annotation belongs to the oldest operator
    of its kind that has started and is not taken yet.
    """
    queues: dict[str, deque[int]] = defaultdict(deque)
    operators = recording.of_kind(EventKind.CPU_OP)
    for event in recording.named(operators, lambda name: name.startswith("c10d::")).tolist():
        queues[operation_of(recording.name_of(event))].append(event)
    start = recording.events.start_ns
    source = chosen.copy()
    for position, event in enumerate(chosen.tolist()):
        queue = queues[operation_of(recording.name_of(event))]
        if queue and start[queue[0]] <= start[event]:
            source[position] = queue.popleft()
    return source


def _collective(
    recording: Recording, step: int, event: int, source: int, phase: Phase, context: _Context
) -> RankCollective:
    events = recording.events
    args = recording.comm_args.get(event, _NO_ARGS)
    size = element_bytes(args.dtype) or element_bytes(context.args.dtype)
    start = int(events.start_ns[event])
    return RankCollective(
        event=event,
        lane=int(events.lane[source]),
        operation=_operation(args, context, recording.name_of(event)),
        label=context.label,
        phase=phase,
        step=step,
        start_ns=start,
        end_ns=start + int(events.dur_ns[event]),
        launch_ns=int(events.start_ns[source]),
        group=args.group_ranks or _configured_ranks(recording, args.group_name),
        group_size=args.group_size,
        group_name=args.group_name,
        sequence=args.sequence,
        in_bytes=_bytes(args.in_elements, context.args.in_elements, size),
        out_bytes=_bytes(args.out_elements, context.args.out_elements, size),
        in_split=args.in_split,
        out_split=args.out_split,
        dtype=args.dtype or context.args.dtype,
    )


def _configured_ranks(recording: Recording, group_name: str | None) -> tuple[int, ...] | None:
    """The members of a group of that name, which the arguments cut short where there are many."""
    named = {group.ranks for group in recording.process_groups if group.name == group_name}
    return next(iter(named)) if len(named) == 1 else None


def _bytes(own: int | None, around: int | None, element_size: int | None) -> int | None:
    elements = around if own is None else own
    return None if elements is None or element_size is None else elements * element_size


def _operation(args: CommArgs, context: _Context, kernel_name: str) -> str:
    """Arguments say most, then the annotation around the launch, then the kernel's name.

    A named peer means point to point, whatever the call was called ("coalesced").

    A SendRecv kernel that nothing else explains is an all-to-all, because TorchRec's exchanges look like
    that, unless the rank also sends from point to point (:func:`_unexplained_send_recv`).
    """
    peers = {args.peer_src, args.peer_dst} - {None}
    if len(peers) == 2 and operation_of(args.collective or "") not in SYNCHRONISING:
        return "send_recv"
    for text in (args.collective, context.operation):
        operation = operation_of(text) if text else UNKNOWN
        if operation != UNKNOWN:
            return operation
    operation = operation_of(kernel_name)
    if operation != "send_recv":
        return operation
    return "all_to_all" if context.label is not None else context.unexplained


def _unexplained_send_recv(recording: Recording) -> str:
    """What a SendRecv kernel without arguments and annotation is: all_to_all, send_recv or unknown.

    A rank of a pipeline of stages sends from point to point, and its annotations or arguments say so
    elsewhere. If it exchanges all to all as well, nothing tells which of the two such a kernel is.
    """
    marks = recording.of_kind(EventKind.ANNOTATION)
    launches = recording.named(marks, lambda name: name.startswith(LAUNCH_PREFIXES))
    told = {operation_of(recording.strings[name]) for name in np.unique(recording.events.name[launches])}
    told |= {operation_of(args.collective) for args in recording.comm_args.values() if args.collective}
    if "send_recv" not in told:
        return "all_to_all"
    return UNKNOWN if "all_to_all" in told else "send_recv"


def _context(recording: Recording, annotations: AnnotationIndex, source: int, unexplained: str) -> _Context:
    events = recording.events
    found = annotations.around(int(events.lane[source]), int(events.start_ns[source]))
    return _Context(
        operation=UNKNOWN if found.backend == MISSING else operation_of(recording.name_of(found.backend)),
        label=None if found.payload == MISSING else without_batch_index(recording.name_of(found.payload)),
        args=recording.comm_args.get(found.backend, _NO_ARGS),
        unexplained=unexplained,
    )


def _step_number(steps: Steps, index: int) -> int:
    numbers = steps.steps
    if not numbers:
        return 0
    if index < 0:
        return numbers[0].number - 1
    return numbers[index].number if index < len(numbers) else numbers[-1].number + 1
