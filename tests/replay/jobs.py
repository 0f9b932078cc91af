"""Replaying short recordings and built jobs: what starts when, after which change."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.builders import Job
from traceinsight import api
from traceinsight.replay.build import build_graph
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.graph import Graph, NodeKind
from traceinsight.replay.predict import Bench
from traceinsight.replay.prepared import Prepared, prepare
from traceinsight.replay.solve import replay
from traceinsight.replay.stretch import stretches
from traceinsight.simulate import decode_spec, simulate, write_run
from traceinsight.trace.activity import activities
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import MISSING, Recording
from traceinsight.trace.trace_set import TraceSet


def graph_of(trace_set: TraceSet) -> Graph:
    """The graph of the only stretch."""
    (stretch,) = stretches(trace_set)
    return build_graph(trace_set, activities(trace_set), stretch)


def assembled(*recordings: Recording) -> tuple[TraceSet, Graph]:
    trace_set = assemble(recordings)
    return trace_set, graph_of(trace_set)


def starts(
    trace_set: TraceSet, graph: Graph, lengths: Mapping[str, int] | None = None
) -> dict[tuple[int, str], float]:
    """(rank, name) -> start after replay, ns after the graph's origin, with other lengths of device work.

    Names must be unique on a rank. A collective is there with its arrival; its transfer as "<name> transfer";
    a host call with its begin, and the return of a synchronisation as "<name> returns".
    """
    names = [_name(trace_set, graph, node) for node in range(len(graph.nodes.kind))]
    duration = graph.nodes.duration_ns.copy()
    for name, length in (lengths or {}).items():
        changed = [at for at, (_, own) in enumerate(names) if own == name]
        assert changed, name
        duration[changed] = length
    moments = replay(graph.with_durations(duration))
    found: dict[tuple[int, str], float] = {}
    for key, moment in zip(names, moments.tolist(), strict=True):
        found[(key[0], f"{key[1]} returns") if key in found else key] = moment
    return found


def _name(trace_set: TraceSet, graph: Graph, node: int) -> tuple[int, str]:
    rank, event = int(graph.nodes.rank[node]), int(graph.nodes.event[node])
    trace = next((trace for trace in trace_set.ranks if trace.rank == rank), None)
    if trace is None or event == MISSING:
        return rank, f"#{node}"
    name = trace.recording.name_of(event)
    return rank, f"{name} transfer" if graph.nodes.kind[node] == NodeKind.TRANSFER else name


def step_ns(job: Job) -> float:
    """Truth: mean time from the end of one step's work, on the last rank, to the end of the next one's.

    Without a device the last collective ends a step.
    """
    work = [(work.step, work.end) for own in job.device.values() for work in own]
    work += [(one.step, one.end) for one in job.collectives]
    ends = [max(end for number, end in work if number == step) for step in job.steps]
    lengths = [later - earlier for earlier, later in pairwise(ends)]
    return float(np.mean(lengths))


def load(job: Job) -> TraceSet:
    """The job through its files."""
    with TemporaryDirectory() as folder:
        return api.load(job.write(Path(folder) / "job"), workers=1).trace_set


def prepared(job: Job) -> Prepared:
    trace_set = load(job)
    found = prepare(trace_set, activities(trace_set))
    assert isinstance(found, Prepared), found
    return found


def predicted_ns(job: Job, edits: Sequence[str] = ()) -> float:
    """Predicted step time after the edits."""
    return Bench(prepared(job)).predict([parse_edit(text) for text in edits]).expected_ns


def bench_of(folder: Path, specification: Mapping[str, Any]) -> Bench:
    """A simulated run, through its files in this folder, on the bench."""
    write_run(simulate(decode_spec(specification)), str(folder), overwrite=True)
    trace_set = api.load(str(folder), workers=1).trace_set
    found = prepare(trace_set, activities(trace_set))
    assert isinstance(found, Prepared), found
    return Bench(found)
