"""2D parallelism: tables sharded inside groups of ranks, and the groups replicas of each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceinsight.base.manifest.tables import described_tables
from traceinsight.base.units import format_bytes, format_ns
from traceinsight.replay.edits.balance import scale_lookups
from traceinsight.replay.edits.edit import Explanation, NotApplicableError
from traceinsight.replay.edits.host import NEVER_NS
from traceinsight.replay.edits.payload import scale_transfers
from traceinsight.replay.facts import Facts, busiest_bytes, is_embedding_exchange, sides
from traceinsight.replay.graph import EdgeKind, Graph, NodeKind, ReplicaSync
from traceinsight.replay.links import Links
from traceinsight.replay.measured_links import links_of
from traceinsight.replay.shard_costs import VALUE_BYTES, all_shards
from traceinsight.trace.trace_set import MatchedCollective

_BLIND_UNCERTAINTY = 0.5


@dataclass(frozen=True, slots=True)
class ShardingGroups:
    """``2d=<group size>[,sync=<n>]``: all-to-alls stay inside groups of ranks, which are replicas.

    Model: consecutive ranks form a group, which holds all tables and serves its own ranks only. A rank waits
    for its group's ranks; its bytes per exchange stay, but go to fewer peers over the links that the group
    has, inside a node where it fits into one. A rank takes over the tables of the ranks with its place in the
    other groups, for 1/groups of the examples each: its lookups change as the ids it gets, to the mean of
    theirs. Every ``sync`` steps the replicas all-reduce their FP32 tables after the optimizer; what slack the
    steps until the next sync have makes up for a part of it.
    Assumes that memory suffices (more tables per rank), 8 GPUs per node where nothing names the nodes, and a
    plan that is no better balanced. Without table sizes (run.json) the sync is left out, and said to be.
    """

    group_size: int
    sync_every: int = 1
    uncertainty: float = 0.25

    @property
    def text(self) -> str:
        """``2d=8,sync=4``."""
        return f"2d={self.group_size}" + (f",sync={self.sync_every}" if self.sync_every != 1 else "")

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Divide the exchanges, fold the lookups, add the sync."""
        if graph.group_size is not None:
            raise NotApplicableError(f"exchanges are confined to groups of {graph.group_size} ranks already")
        links = links_of(facts)
        chosen = self._chosen(facts)
        count = len(facts.trace_set.collectives) + 1
        ratio, latency = np.ones(count), np.ones(count)
        for index in chosen:
            ratio[index], latency[index] = self._ratios(facts.trace_set.collectives[index], links)
        edited = scale_transfers(graph, facts, ratio, np.zeros(count), latency)
        edited = _regroup(edited, set(chosen), self.group_size)
        edited = scale_lookups(edited, facts, lambda work: self._lookups(work, _ids_of(facts)))
        return _after_optimizer(edited, facts, self._sync_ns(facts, links), self)

    def explain(self, facts: Facts) -> Explanation:
        """Which nodes were assumed, what the sync costs, what memory it takes."""
        links = links_of(facts)
        said = []
        if not links.node_known:
            said.append(f"{links.per_node} ranks per node assumed")
        owned, sync = owned_bytes(facts, self.group_size), self._sync_ns(facts, links)
        if not owned or not sync:
            unknown = "the network is not known" if owned else "table sizes are not known (run.json)"
            why = unknown if facts.trace_set.has_gpu else "no device work was recorded that it could follow"
            said.append(f"replica sync not included: {why}")
            return Explanation("; ".join(said), _BLIND_UNCERTAINTY)
        most = max(owned.values())
        said.append(f"a rank's tables take {format_bytes(most)}, a sync {format_ns(max(sync.values()))}")
        if facts.gpu is not None and most > facts.gpu.memory_gb * 1e9:
            said.append(f"more than the GPU's {facts.gpu.memory_gb:g} GB of memory")
        return Explanation("; ".join(said))

    def _chosen(self, facts: Facts) -> list[int]:
        """Positions of the exchanges that are to be divided.

        Raises:
            NotApplicableError: If there are none, or the ranks do not make whole groups.

        """
        world = facts.trace_set.world_size or len(facts.trace_set.ranks)
        if world % self.group_size or world == self.group_size:
            ranks = "one rank" if world == 1 else f"{world} ranks"
            raise NotApplicableError(f"{ranks} cannot be divided into several groups of this size")
        found = [
            index
            for index, one in enumerate(facts.trace_set.collectives)
            if (one.operation == "all_to_all" or is_embedding_exchange(one))
            and one.complete
            and len(one.ranks) > self.group_size
        ]
        if not found:
            raise NotApplicableError(f"no complete all-to-all spans more than {self.group_size} ranks")
        return found

    def _ratios(self, one: MatchedCollective, links: Links) -> tuple[float, float]:
        """(payload, latency) after / before of one exchange."""
        groups = _blocks(one.ranks, self.group_size)
        # Groups differ where one spans more nodes than another; the slowest sets the pace of the job.
        before = links.latency_ns(one.operation, one.ranks)
        latency = max(links.latency_ns(one.operation, group) for group in groups) / before if before else 1.0
        size = busiest_bytes(one)
        if not size:
            return 1.0, latency
        old = links.payload_ns(one.operation, size, one.ranks)
        new = [links.payload_ns(one.operation, self._busiest_folded(one), group) for group in groups]
        if old is None or None in new:
            raise NotApplicableError("the bandwidth inside a node is not known (unknown GPU)")
        return max(each for each in new if each is not None) / old, latency

    def _folded(self, per_rank: dict[int, float]) -> dict[int, float]:
        """Each rank's value becomes the mean over the ranks with its place in their groups."""
        places: dict[int, list[float]] = defaultdict(list)
        for rank, value in per_rank.items():
            places[rank % self.group_size].append(value)
        return {rank: float(np.mean(places[rank % self.group_size])) for rank in per_rank}

    def _lookups(self, work: dict[int, float], ids: dict[int, float]) -> dict[int, float]:
        """A rank's lookups change as the ids it gets do; what makes a rank slow besides stays its own."""
        if not all(ids.get(rank) for rank in work):
            return self._folded(work)
        after = self._folded({rank: ids[rank] for rank in work})
        return {rank: taken * after[rank] / ids[rank] for rank, taken in work.items()}

    def _busiest_folded(self, one: MatchedCollective) -> float:
        return max(max(self._folded(side).values()) for side in sides(one) if side)

    def _sync_ns(self, facts: Facts, links: Links) -> dict[int, float]:
        """Place in the group -> an all-reduce of its tables between replicas; empty where not known."""
        owned, world = owned_bytes(facts, self.group_size), facts.trace_set.world_size
        if owned is None or world is None or not facts.trace_set.has_gpu:
            return {}
        found = {}
        for place, size in owned.items():
            replicas = range(place, world, self.group_size)
            moving = links.payload_ns("all_reduce", size, replicas)
            if moving is None:
                return {}
            found[place] = moving + links.latency_ns("all_reduce", replicas)
        return found


def owned_bytes(facts: Facts, group_size: int) -> dict[int, float] | None:
    """Place in a group of so many ranks -> bytes of the FP32 tables it would own; None where nothing says.

    By the sharding plan of the run manifest, folded into the group; else all of its tables, evenly.
    """
    manifest = facts.trace_set.manifest or {}
    planned = all_shards(manifest)
    if planned:
        found = dict.fromkeys(range(group_size), 0.0)
        for shard in planned:
            found[shard.rank % group_size] += shard.row_count * shard.dim * VALUE_BYTES
        return found
    tables = described_tables(manifest)
    total = sum(table.rows * table.dim * VALUE_BYTES for table in tables or [])
    return dict.fromkeys(range(group_size), total / group_size) if total else None


def _blocks(ranks: Sequence[int], size: int) -> list[list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for rank in ranks:
        found[rank // size].append(rank)
    return list(found.values())


def _regroup(graph: Graph, collectives: set[int], size: int) -> Graph:
    """Let ranks meet in groups: the chain of arrivals becomes one chain per group.

    The nodes stay. A link of a chain follows the one before it in its group, and transfers its last.
    """
    nodes, edges = graph.nodes, graph.edges
    wanted = np.isin(nodes.collective, np.array(sorted(collectives), dtype=np.int64))
    meeting = np.flatnonzero((edges.kind == EdgeKind.MEETING) & wanted[edges.target])
    is_link = nodes.kind == NodeKind.MEETING
    arriving = meeting[~is_link[edges.source[meeting]]]
    group = np.where(nodes.rank >= 0, nodes.rank // size, -1)
    group[edges.target[arriving]] = nodes.rank[edges.source[arriving]] // size
    before: dict[int, int] = {}
    last: dict[tuple[int, int], int] = {}
    for link in edges.target[arriving].tolist():
        key = int(nodes.collective[link]), int(group[link])
        if key in last:
            before[link] = last[key]
        last[key] = link
    source, lag = edges.source.copy(), edges.lag_ns.copy()
    for at in meeting[is_link[edges.source[meeting]]].tolist():
        target = int(edges.target[at])
        key = int(nodes.collective[target]), int(group[target])
        follows = before.get(target) if is_link[target] else last[key]
        if follows is None:
            lag[at] = NEVER_NS  # the first of its group to arrive
        else:
            source[at] = follows
    return replace(graph, edges=replace(edges, source=source, lag_ns=lag), group_size=size)


def _ids_of(facts: Facts) -> dict[int, float]:
    """Rank -> bytes of ids and lengths it got to look up, in all steps; empty where not recorded."""
    found: dict[int, float] = defaultdict(float)
    for one in facts.trace_set.collectives:
        if one.operation == "all_to_all" and one.phase == "sparse_data_dist":
            for rank, size in sides(one)[1].items():
                found[rank] += size
    return found


def _after_optimizer(graph: Graph, facts: Facts, sync_ns: dict[int, float], edit: ShardingGroups) -> Graph:
    """Let a sync hold up what follows each rank's last dense (or embedding) update of a step."""
    held_ns = np.zeros(len(graph.nodes.kind))
    for family in ("optimizer", "embedding") if sync_ns else ():
        found = np.flatnonzero((facts.family == family) & np.isin(graph.nodes.step, graph.steps))
        places = np.column_stack((graph.nodes.rank[found], graph.nodes.step[found]))[::-1]
        _, latest = np.unique(places, axis=0, return_index=True)
        for node in found[::-1][latest].tolist():
            held_ns[node] = sync_ns[int(graph.nodes.rank[node]) % edit.group_size]
        if len(found):
            break
    return replace(graph, sync=ReplicaSync(held_ns, edit.sync_every))
