"""How evenly the tables behind an exchange spread over more or fewer ranks: whole tables do not divide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceinsight.replay.facts import Facts, sides, wire_bytes_per_value
from traceinsight.replay.placement import per_rank, place
from traceinsight.replay.shard_costs import VALUE_BYTES, ShardCosts, shard_costs
from traceinsight.trace.trace_set import MatchedCollective

ID_BYTES = 8

ALIKE = 1.1
"""An exchange is of the tables that account for its bytes within this factor: codecs add scales."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The sharding plan of a job with so many ranks: what each shard costs, and which tables are whole."""

    costs: ShardCosts
    whole: tuple[bool, ...]
    world: int
    examples: float

    @classmethod
    def of(cls, facts: Facts) -> Spread | None:
        """None where run.json has no costs, or not of every rank (2D lists the first group only)."""
        manifest, world = facts.trace_set.manifest or {}, facts.trace_set.world_size
        costs, batch = shard_costs(manifest), manifest.get("batch_per_rank")
        if costs is None or world is None or {shard.rank for shard in costs.shards} != set(range(world)):
            return None
        if not costs.measured and type(batch) is not int:
            return None
        pieces = Counter(shard.table for shard in costs.shards)
        whole = tuple(shard.movable and pieces[shard.table] == 1 for shard in costs.shards)
        return cls(costs, whole, world, 1.0 if costs.measured else float(world * int(str(batch))))

    def ratio(self, one: MatchedCollective, ranks: int) -> float:
        """Busiest rank over the mean, on so many ranks over today, of the whole tables behind an exchange.

        They are placed by longest processing time first. 1 for exchanges of tables in pieces, which are taken
        to spread as evenly as today, and of what cannot be told.
        """
        sent = sides(one)[0]
        if one.operation != "all_to_all" or len(sent) < self.world or ranks == self.world:
            return 1.0
        ids = one.phase == "sparse_data_dist"
        costs = self.costs.ids if ids else self.costs.returned_bytes
        wire = ID_BYTES if ids else (wire_bytes_per_value(one) or VALUE_BYTES) / VALUE_BYTES
        mean = float(np.mean(list(sent.values())))
        sums = {
            kind: sum(cost for cost, whole in zip(costs, self.whole, strict=True) if whole == kind)
            for kind in (True, False)
        }
        off = {kind: _apart(mean, size * wire * self.examples / self.world) for kind, size in sums.items()}
        if off[True] > ALIKE or off[True] > off[False]:
            return 1.0
        chosen = [at for at, whole in enumerate(self.whole) if whole]
        sizes = [costs[at] for at in chosen]
        anew = place(sizes, [0] * len(sizes), range(ranks))
        return anew.after / self._today(sizes, [self.costs.shards[at].rank for at in chosen])

    def _today(self, costs: Sequence[float], owners: Sequence[int]) -> float:
        loads = per_rank(costs, owners, range(self.world)).values()
        return max(loads) * self.world / sum(loads)


def _apart(a: float, b: float) -> float:
    """The factor between two sizes, at least 1."""
    return max(a / b, b / a) if a > 0 and b > 0 else float("inf")
