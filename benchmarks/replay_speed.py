"""How long it takes to build the graph of a run, and to replay it.

    python benchmarks/replay_speed.py [--ranks 64] [--events 20000] [--steps 1] [--profile]

The recordings are synthetic and made in memory: per rank and step so many GPU events on three streams, each
with its launch call; every 100th an all-to-all of all ranks, before every 50th a cudaStreamWaitEvent.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from traceinsight.replay.edits.registry import parse_edit  # noqa: E402 - the repository must be on the path
from traceinsight.replay.predict import Bench  # noqa: E402
from traceinsight.replay.prepared import Prepared, Unpredictable, prepare  # noqa: E402
from traceinsight.replay.solve import replay  # noqa: E402
from traceinsight.trace.activity import activities  # noqa: E402
from traceinsight.trace.assemble import assemble  # noqa: E402
from traceinsight.trace.recording import (  # noqa: E402
    MISSING,
    CommArgs,
    Device,
    EventKind,
    EventTable,
    Lane,
    Recording,
)

STRINGS = (
    "ampere_sgemm_128x64_nn",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "cudaLaunchKernel",
    "cudaStreamWaitEvent",
    "cudaStreamSynchronize",
)
GEMM, EXCHANGE, LAUNCH, WAIT, SYNC = range(len(STRINGS))
LANES = (Lane("1", "main"), *(Lane("0", str(s), device=0, stream=s) for s in (7, 20, 24)))
LAUNCH_NS, KERNEL_NS, TRANSFER_NS, MEET_EVERY, WAIT_EVERY = 3_000, 8_000, 40_000, 100, 50


def synthetic(rank: int, ranks: int, steps: int, count: int) -> Recording:
    """One rank: kernels on stream 7, in blocks that each end with an exchange of all ranks on stream 20."""
    per_step = np.arange(count)
    meets = per_step % MEET_EVERY == MEET_EVERY - 1
    wobble = np.random.default_rng(rank).integers(0, 500, (steps, count))
    rows: list[tuple[int, int, int, int, int, int]] = []  # start, duration, name, kind, lane, correlation
    strings = [*STRINGS, *(f"ProfilerStep#{step}" for step in range(steps))]
    longest = count * (KERNEL_NS + 500) + int(meets.sum()) * TRANSFER_NS + 1_000_000
    for step in range(steps):
        begin = step * longest
        rows.append((begin, longest, len(STRINGS) + step, int(EventKind.ANNOTATION), 0, MISSING))
        # Exchanges end at the same time for all: each slot is as long as the slowest rank may need.
        slot = (per_step // MEET_EVERY) * (MEET_EVERY * (KERNEL_NS + 500) + TRANSFER_NS)
        inside = np.zeros(count, dtype=np.int64)
        for first in range(0, count, MEET_EVERY):
            lengths = KERNEL_NS + wobble[step, first : first + MEET_EVERY]
            inside[first : first + MEET_EVERY] = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        start = begin + 10_000 + slot + inside
        length = np.where(meets, 0, KERNEL_NS + wobble[step])
        end = begin + 10_000 + slot + MEET_EVERY * (KERNEL_NS + 500) + TRANSFER_NS
        length = np.where(meets, end - start, length)
        launch = begin + 1_000 + per_step * LAUNCH_NS
        key = step * count + per_step + 1
        for at in range(count):
            kind = int(EventKind.RUNTIME)
            rows.append((int(launch[at]), 1_500, LAUNCH, kind, 0, int(key[at])))
            if at % WAIT_EVERY == WAIT_EVERY - 1:
                rows.append((int(launch[at]) - 800, 500, WAIT, kind, 0, MISSING))
            name, lane = (EXCHANGE, 2) if meets[at] else (GEMM, 1)
            rows.append((int(start[at]), int(length[at]), name, int(EventKind.KERNEL), lane, int(key[at])))
    rows.sort(key=lambda row: (row[0], -row[1]))
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    missing = np.full(len(rows), MISSING, dtype=np.int64)
    table = EventTable(
        start_ns=columns[0], dur_ns=columns[1], name=columns[2].astype(np.int32),
        kind=columns[3].astype(np.int8), lane=columns[4].astype(np.int32), correlation=columns[5],
        external_id=missing, size_bytes=missing,
    )  # fmt: skip
    args = CommArgs(
        "all_to_allv", 1_000_000, 1_000_000, "Float", group_name="0", group_ranks=tuple(range(ranks))
    )
    exchanges = np.flatnonzero((columns[2] == EXCHANGE) & (columns[3] == int(EventKind.KERNEL)))
    return Recording(
        file=f"rank{rank}.json", rank=rank, rank_source="none", world_size=ranks, backend="nccl", host=None,
        devices=(Device(0, "NVIDIA A100-SXM4-80GB"),), process_groups=(), strings=tuple(strings), lanes=LANES,
        events=table, comm_args=dict.fromkeys(exchanges.tolist(), args), metadata={}, notes=(),
    )  # fmt: skip


def measure(ranks: int, events: int, steps: int) -> None:
    begin = perf_counter()

    def lap(what: str) -> None:
        nonlocal begin
        now = perf_counter()
        print(f"{what:50}{now - begin:8.2f} s", flush=True)
        begin = perf_counter()

    recordings = [synthetic(rank, ranks, steps, events) for rank in range(ranks)]
    lap("making the recordings (not part of the product)")
    trace_set = assemble(recordings)
    lap("assembling the trace set")
    activity = activities(trace_set)
    lap("activities")
    prepared = prepare(trace_set, activity)
    lap("graph and residual")
    if isinstance(prepared, Unpredictable):
        raise SystemExit(prepared.reason)
    _measure_replay(prepared, lap)


def _measure_replay(prepared: Prepared, lap: Callable[[str], None]) -> None:
    graphs = prepared.graphs
    for graph in graphs:
        replay(graph)
    lap("one replay")
    bench = Bench(prepared)
    lap("a bench (one replay)")
    bench.predict([parse_edit("qcomms=fp8")])
    lap("one prediction")
    nodes, edges = sum(len(g.nodes.kind) for g in graphs), sum(len(g.edges.source) for g in graphs)
    print(f"{nodes:,} nodes, {edges:,} edges, residual {prepared.residual.share:.2%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--events", type=int, default=20_000, help="GPU events per rank and step")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    profile = cProfile.Profile() if options.profile else None
    if profile is None:
        measure(options.ranks, options.events, options.steps)
    else:
        profile.runcall(measure, options.ranks, options.events, options.steps)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
