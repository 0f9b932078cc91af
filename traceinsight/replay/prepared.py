"""A run made ready for prediction: its graphs, its measured step time, and how well the graphs explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceinsight.base.statistics import median
from traceinsight.base.units import format_ranks
from traceinsight.replay.beside import with_beside
from traceinsight.replay.build import build_graph
from traceinsight.replay.graph import Graph
from traceinsight.replay.lost_kernels import Lost, lost_of, with_lost_kernels
from traceinsight.replay.solve import Times, replay, step_length_ns
from traceinsight.replay.stretch import Stretch, stretches
from traceinsight.trace.activity import Activity, activities
from traceinsight.trace.recording import EventKind
from traceinsight.trace.trace_set import TraceSet

MAX_RESIDUAL_SHARE = 0.05
"""Above this share of the step nothing is predicted: the graph misses what the step time depends on."""

MAX_DEVICE_EVENTS = 4_000_000
"""Over all ranks: a replay of so many takes about five seconds, and a roadmap a dozen replays."""

MAX_GUESSED_SHARE = 0.05
"""Of the device events of the replayed steps: above it, too much was lost to be guessed from other steps."""

MAX_LACKING_SHARE = 0.05
"""Of the time of the replayed steps: collectives that lack a rank wait for nobody, whatever an edit does."""

LEAST_STEPS = 2
"""A step is measured from the end of the one before it."""


@dataclass(frozen=True, slots=True)
class Residual:
    """How far a replay from causes alone is from the measured steps, as share of the step.

    Delays that nothing in the graph explains are left out of that replay, so this cannot be zero by
    construction. ``worst_step`` is a step number.
    """

    share: float
    worst_share: float
    worst_step: int | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """One run, ready to be edited.

    ``step_ns`` is the measured time from the end of one step's work to the end of the next one's: where the
    device falls behind its host, the windows of single steps are too short. With no two steps in a row it is
    the median step window. ``trace_set`` is the run as replayed: with the kernels that the profiler lost.
    """

    trace_set: TraceSet
    graphs: tuple[Graph, ...]
    step_ns: float
    residual: Residual
    lost: Lost


@dataclass(frozen=True, slots=True)
class Unpredictable:
    """Why nothing is predicted for this run; the residual is None where no replay was possible."""

    reason: str
    residual: Residual | None


def prepare(trace_set: TraceSet, activity: Mapping[int, Activity]) -> Prepared | Unpredictable:
    """Build the graphs of a run and judge them."""
    unrecorded = [trace.rank for trace in trace_set.ranks if not trace.device_recorded]
    if unrecorded:
        return Unpredictable("the device of some ranks was not recorded", None)
    whole = with_lost_kernels(trace_set)
    if whole is not trace_set:
        trace_set, activity = whole, activities(whole)
    runs = _affordable(stretches(trace_set), _device_events_per_step(trace_set))
    if not runs or trace_set.step_source != "ProfilerStep":
        return Unpredictable(_why_no_step(trace_set), None)
    lost = lost_of(trace_set, [step for run in runs for step in run.steps])
    if lost.guessed_share > MAX_GUESSED_SHARE or lost.lacking_share > MAX_LACKING_SHARE:
        return Unpredictable(_what_was_lost(lost), None)
    graphs = tuple(build_graph(trace_set, activity, run) for run in runs)
    residual = _residual(graphs)
    if residual.share > MAX_RESIDUAL_SHARE:
        return Unpredictable(
            f"replayed from causes, a step differs by {residual.share:.1%} from the measured one "
            f"(limit {MAX_RESIDUAL_SHARE:.0%})",
            residual,
        )
    graphs = with_beside(graphs, trace_set)
    return Prepared(trace_set, graphs, _measured_step_ns(trace_set, graphs), residual, lost)


def _what_was_lost(lost: Lost) -> str:
    if lost.guessed_share > MAX_GUESSED_SHARE:
        limit = f"limit {MAX_GUESSED_SHARE:.0%}"
        what = f"{lost.guessed_share:.1%} of the device work of the replayed steps ({limit})"
    else:
        what = f"{lost.lacking} of {lost.collectives} collectives of the replayed steps lack a rank"
    return f"kernels were lost: {what}; capture again"


def _why_no_step(trace_set: TraceSet) -> str:
    if trace_set.step_source != "ProfilerStep":
        return "no step is marked (ProfilerStep#)"
    without = [
        trace.rank
        for trace in trace_set.ranks
        if not any(trace.step(number) is not None for number in trace_set.steps)
    ]
    if without and len(without) < len(trace_set.ranks):
        return (
            f"no analysed step was captured whole on rank{'s' * (len(without) > 1)} {format_ranks(without)}"
        )
    return "no marked step was captured on all ranks"


def _affordable(runs: Sequence[Stretch], events_per_step: float) -> list[Stretch]:
    """The first steps that hold ``MAX_DEVICE_EVENTS`` together, but at least two of a stretch."""
    left = max(int(MAX_DEVICE_EVENTS // max(events_per_step, 1.0)), LEAST_STEPS)
    chosen = []
    for run in sorted(runs, key=lambda run: len(run.steps), reverse=True):
        if run.steps[:left]:
            chosen.append(Stretch(run.steps[:left]))
        left -= len(run.steps[:left])
    return sorted(chosen, key=lambda run: run.steps)


def _device_events_per_step(trace_set: TraceSet) -> float:
    kinds = (EventKind.KERNEL, EventKind.MEMCPY, EventKind.MEMSET)
    events = sum(len(trace.recording.of_kind(*kinds)) for trace in trace_set.ranks)
    return events / max(len(trace_set.steps) + len(trace_set.dropped_steps), 1)


def _measured_step_ns(trace_set: TraceSet, graphs: tuple[Graph, ...]) -> float:
    if any(len(graph.steps) > 1 for graph in graphs):
        return step_length_ns(graphs, [graph.nodes.measured_ns.astype(np.float64) for graph in graphs])
    windows = [
        step.window_ns[1] - step.window_ns[0]
        for trace in trace_set.ranks
        for step in trace.steps.steps
        if step.number in trace_set.steps
    ]
    return median(windows)


def _residual(graphs: tuple[Graph, ...]) -> Residual:
    shares: dict[int, float] = {}
    for graph in graphs:
        caused = graph.with_lags(graph.edges.lag_ns - graph.edges.unexplained_ns)
        shares |= _step_errors(graph, replay(caused))
    if not shares:
        return Residual(0.0, 0.0, None)
    worst = max(shares, key=lambda step: shares[step])
    return Residual(median(list(shares.values())), shares[worst], worst)


def _step_errors(graph: Graph, start_ns: Times) -> dict[int, float]:
    """Per step: how far its replayed length is from the measured one, as share of the latter.

    A step's length counts from the end of the previous step's last work (or the beginning) to its own.
    """
    errors = {}
    measured_before, replayed_before = 0.0, 0.0
    for step in graph.steps:
        members = np.flatnonzero(graph.nodes.step == step)
        if not len(members):
            continue
        work = graph.nodes.duration_ns[members]
        measured = float((graph.nodes.measured_ns[members] + work).max())
        replayed = float((start_ns[members] + work).max())
        length = measured - measured_before
        if length > 0:
            errors[step] = abs((replayed - replayed_before) - length) / length
        measured_before, replayed_before = measured, replayed
    return errors
