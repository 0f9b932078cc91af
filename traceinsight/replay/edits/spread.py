"""How evenly the tables behind an exchange spread over more or fewer ranks: whole tables do not divide."""

from __future__ import annotations

from collections import Counter, defaultdict
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
    """The sharding plan of a job with so many ranks: what each shard costs, and which tables are whole.

    ``per_rank``: whose rows are in as many pieces as there are ranks, or a multiple. Each piece gives back a
    vector per example, so where more ranks bring more pieces, every rank gives back more.
    """

    costs: ShardCosts
    whole: tuple[bool, ...]
    per_rank: tuple[bool, ...]
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
        grow = _tables_per_rank(costs, world)
        per_rank = tuple(shard.table in grow for shard in costs.shards)
        return cls(costs, whole, per_rank, world, 1.0 if costs.measured else float(world * int(str(batch))))

    def ratio(self, one: MatchedCollective, ranks: int) -> float:
        """Busiest rank over the mean, on so many ranks over today, of the whole tables behind an exchange.

        They are placed by longest processing time first. 1 for exchanges of tables in pieces, which are taken
        to spread as evenly as today, and of what cannot be told.
        """
        sent = sides(one)[0]
        if one.operation != "all_to_all" or len(sent) < self.world or ranks == self.world:
            return 1.0
        if not self._carries_whole(one, sent):
            return 1.0
        ids = one.phase == "sparse_data_dist"
        costs = self.costs.ids if ids else self.costs.returned_bytes
        chosen = [at for at, whole in enumerate(self.whole) if whole]
        sizes = [costs[at] for at in chosen]
        anew = place(sizes, [0] * len(sizes), range(ranks))
        return anew.after / self._today(sizes, [self.costs.shards[at].rank for at in chosen])

    def grown(self, one: MatchedCollective, ranks: int) -> float:
        """Bytes of an exchange of vectors over today's, if tables per rank get as many more pieces as ranks.

        1 for ids, of which every example has as many as before, and for whole tables.
        """
        sent = sides(one)[0]
        if one.operation != "all_to_all" or one.phase == "sparse_data_dist" or self._carries_whole(one, sent):
            return 1.0
        pieces = [(cost, grows) for cost, grows, whole in self._returned() if not whole]
        return _grown(pieces, ranks / self.world)

    def lookups_grown(self, ranks: int) -> float:
        """Bytes that all lookups read and give back over today's, in the same case."""
        returned = _grown([(cost, grows) for cost, grows, _ in self._returned()], ranks / self.world)
        read, gives = sum(self.costs.read_bytes), sum(self.costs.returned_bytes)
        return (read + gives * returned) / (read + gives) if read + gives > 0 else 1.0

    def _returned(self) -> list[tuple[float, bool, bool]]:
        return list(zip(self.costs.returned_bytes, self.per_rank, self.whole, strict=True))

    def _carries_whole(self, one: MatchedCollective, sent: dict[int, float]) -> bool:
        """Whether its bytes are those of the whole tables rather than of those in pieces."""
        if len(sent) < self.world:
            return False
        ids = one.phase == "sparse_data_dist"
        costs = self.costs.ids if ids else self.costs.returned_bytes
        wire = ID_BYTES if ids else (wire_bytes_per_value(one) or VALUE_BYTES) / VALUE_BYTES
        mean = float(np.mean(list(sent.values())))
        sums = {
            kind: sum(cost for cost, whole in zip(costs, self.whole, strict=True) if whole == kind)
            for kind in (True, False)
        }
        off = {kind: _apart(mean, size * wire * self.examples / self.world) for kind, size in sums.items()}
        return off[True] <= ALIKE and off[True] <= off[False]

    def _today(self, costs: Sequence[float], owners: Sequence[int]) -> float:
        loads = per_rank(costs, owners, range(self.world)).values()
        return max(loads) * self.world / sum(loads)


def _grown(pieces: Sequence[tuple[float, bool]], factor: float) -> float:
    """(cost, whether it grows by the factor): the sum after over the sum before."""
    total = sum(cost for cost, _ in pieces)
    return sum(cost * (factor if grows else 1.0) for cost, grows in pieces) / total if total > 0 else 1.0


def _tables_per_rank(costs: ShardCosts, world: int) -> set[str]:
    """Tables whose rows are in as many pieces as there are ranks, or a multiple; none of one rank.

    Left out are those that give back all they read: without pooling a piece has a vector per id.
    """
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    unpooled = dict.fromkeys((shard.table for shard in costs.shards), True)
    for shard, read, returned in zip(costs.shards, costs.read_bytes, costs.returned_bytes, strict=True):
        rows[shard.table].append(shard.rows)
        unpooled[shard.table] &= read == returned
    return {
        table
        for table, pieces in rows.items()
        if world > 1 and len(pieces) % world == 0 and len(set(pieces)) == len(pieces) and not unpooled[table]
    }


def _apart(a: float, b: float) -> float:
    """The factor between two sizes, at least 1."""
    return max(a / b, b / a) if a > 0 and b > 0 else float("inf")
