"""Simulated jobs for the straggler cases, each made and read once, and what truly happened in them."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tests.disturb import US
from tests.simulate.specs import two_nodes
from traceinsight.analyses.partition import partition
from traceinsight.analyses.stragglers import StragglerJudgement, find_stragglers
from traceinsight.reading import load
from traceinsight.simulate import SimulatedRun, simulate, write_run
from traceinsight.trace.activity import activities
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import Recording
from traceinsight.trace.trace_set import TraceSet

SPREAD_NS = 30 * US
"""Ends of one collective are made to differ by up to this; on public traces it is 2 to 100 us."""

_UNEVEN = {"big": {"count": 2, "partitions_per_rank": None, "placement": "round_robin", "mean_ids": 600.0}}
_CLUSTERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "a100_2x4": {"cluster": {"nodes": 2, "gpus_per_node": 4, "gpu": "A100", "network": "efa_p4d"}},
        "v100_4x2": {"cluster": {"nodes": 4, "gpus_per_node": 2, "gpu": "V100", "network": "ib_ndr"}},
        "h100_4x4": {
            "cluster": {"nodes": 4, "gpus_per_node": 4, "gpu": "H100", "network": "efa_p5"},
            "capture": {"sequence_numbers": True},
        },
        "a100_uneven": {
            "cluster": {"nodes": 2, "gpus_per_node": 4, "gpu": "A100", "network": "efa_p4d"},
            "tables": _UNEVEN,
        },
        "a100_2d": {
            "cluster": {"nodes": 4, "gpus_per_node": 2, "gpu": "A100", "network": "efa_p4d"},
            "two_d": {"group_size": 4, "sync_share": 0.05},
        },
    }
)
JOBS = tuple(_CLUSTERS)


@dataclass(frozen=True)
class Simulated:
    """A run with its recordings, as read from its files."""

    run: SimulatedRun
    recordings: tuple[Recording, ...]
    manifest: Mapping[str, object] | None

    @property
    def world(self) -> int:
        return self.run.spec.world_size

    def lateness_ns(self, group: Collection[int], steps: Collection[int]) -> float:
        """By how much the group came after all others of its collectives: the median weighed by lateness."""
        gaps: list[int] = []
        for meeting in (one for one in self.run.collectives if one.step in steps):
            for ranks in meeting.payload.members:
                mine, others = (
                    [one for one in ranks if one in group],
                    [one for one in ranks if one not in group],
                )
                if mine and others:
                    gaps.append(int(meeting.arrival_ns[mine].max() - meeting.arrival_ns[others].max()))
        late = np.sort([gap for gap in gaps if gap > 0])
        return float(late[np.searchsorted(np.cumsum(late), late.sum() / 2)])


@cache
def simulated(job: str, *late: tuple[int, str, float], seed: int = 3) -> Simulated:
    """A job of three steps; ``late`` gives (rank, what takes longer, ms) as the specification names it."""
    fields: dict[str, Any] = {**_CLUSTERS[job], "seed": seed}
    fields["capture"] = {"steps": 3, **fields.get("capture", {})}
    run = simulate(two_nodes(stragglers=[{"rank": rank, what: ms} for rank, what, ms in late], **fields))
    with tempfile.TemporaryDirectory() as folder:
        write_run(run, Path(folder) / "run")
        read = load(str(Path(folder) / "run"), workers=1)
    return Simulated(run, tuple(read.recordings), read.manifest)


def judged(
    recordings: Sequence[Recording], manifest: Mapping[str, object] | None = None
) -> tuple[TraceSet, StragglerJudgement]:
    """The straggler analysis alone."""
    trace_set = assemble(recordings, manifest=manifest)
    activity = activities(trace_set)
    return trace_set, find_stragglers(trace_set, activity, partition(trace_set, activity))


def groups(judgement: StragglerJudgement) -> list[list[int]]:
    """Who is blamed."""
    return [sorted(one.ranks) for one in judgement.stragglers]
