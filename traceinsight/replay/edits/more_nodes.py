"""The same job on another number of nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traceinsight.base.units import format_factor
from traceinsight.replay.edits.edit import Explanation, NotApplicableError
from traceinsight.replay.edits.payload import scale_transfers
from traceinsight.replay.edits.spread import Spread
from traceinsight.replay.facts import Facts, busiest_bytes
from traceinsight.replay.graph import Graph
from traceinsight.replay.links import Links
from traceinsight.replay.measured_links import links_of
from traceinsight.replay.solve import expected_step_ns
from traceinsight.trace.trace_set import MatchedCollective

_ASSUMED_LAYOUT_UNCERTAINTY = 0.5


@dataclass(frozen=True, slots=True)
class MoreNodes:
    """``nodes=<n>``: the job on n nodes, with the same batch per rank and the same tables.

    Model: today's ranks stand for all. An all-to-all of all ranks keeps its bytes per rank, of which another
    share leaves the node, and has more peers to send to; an all-reduce of all ranks moves 2 (n-1)/n of its
    size over the node. Collectives of fewer ranks (2D) and replica syncs stay. Whole tables are placed anew,
    which makes the busiest rank's share of their exchange larger where they are few to a rank; this needs a
    sharding plan and batch in run.json. Assumes that tables in pieces spread as evenly as today, in as many
    pieces, and that ranks arrive as far apart as today: with more ranks the last usually comes later. Where a
    plan has tables in as many pieces as ranks, the interval reaches to the step with more of them on more
    ranks: each piece gives back a vector per example, so that every rank looks up and sends more. Needs the
    network's speed: from exchanges that cross nodes today, else by its name in run.json. Apply it last: other
    edits still go by today's ranks.
    """

    count: int
    uncertainty: float = 0.35

    @property
    def text(self) -> str:
        """``nodes=4``."""
        return f"nodes={self.count}"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Scale the collectives of all ranks."""
        return self._applied(graph, facts, more_pieces=False)

    def explain(self, facts: Facts) -> Explanation:
        """How many ranks that makes, that they arrive as they do, and what becomes of tables in pieces."""
        links, world = _links(facts), _world(facts)
        ranks = self.count * links.per_node
        said = f"{ranks} ranks instead of {world}, taken to arrive as far apart as today"
        spread, slower = Spread.of(facts), 1.0
        if spread is None or any(spread.per_rank):
            said += ", and tables in pieces to keep as many"
        if spread is not None and any(spread.per_rank) and ranks > world:
            lengths = [expected_step_ns([self._applied(facts.graph, facts, more)]) for more in (False, True)]
            slower = max(lengths[1] / lengths[0], 1.0) if lengths[0] > 0 else 1.0
            said += f"; with pieces for every rank the step takes {format_factor(slower)} as long"
        if links.node_known:
            return Explanation(said, examples_factor=ranks / world, slower_factor=slower)
        assumed = f"{links.per_node} ranks per node assumed; {said}"
        return Explanation(assumed, _ASSUMED_LAYOUT_UNCERTAINTY, ranks / world, slower)

    def _applied(self, graph: Graph, facts: Facts, more_pieces: bool) -> Graph:
        """The graph on that many nodes; with as many more pieces of tables that have one per rank."""
        links, world = _links(facts), _world(facts)
        if world == self.count * links.per_node:
            raise NotApplicableError("the job has that many nodes today")
        count, spread, ranks = (
            len(facts.trace_set.collectives) + 1,
            Spread.of(facts),
            self.count * links.per_node,
        )
        ratio, latency = np.ones(count), np.ones(count)
        for index, one in enumerate(facts.trace_set.collectives):
            grouped = graph.group_size is not None and one.operation != "all_reduce"
            if one.complete and len(one.ranks) == world and not grouped:
                uneven = spread.ratio(one, ranks) if spread else 1.0
                grown = spread.grown(one, ranks) if spread and more_pieces else 1.0
                ratio[index], latency[index] = self._ratios(one, links, uneven * grown)
        if (latency == 1).all() and (ratio == 1).all():
            raise NotApplicableError("no complete collective of all ranks was recorded")
        edited = scale_transfers(graph, facts, ratio, np.zeros(count), latency)
        if spread and more_pieces:
            lookups, duration = facts.family == "embedding", edited.nodes.duration_ns
            longer = duration * spread.lookups_grown(ranks)
            edited = edited.with_durations(np.where(lookups, longer, duration))
        return replace(edited, links=links)

    def _ratios(self, one: MatchedCollective, links: Links, uneven: float) -> tuple[float, float]:
        """(payload, latency) after / before of one collective.

        The busiest rank moves ``uneven`` times as much as today.
        """
        ranks = range(self.count * links.per_node)
        before_ns = links.latency_ns(one.operation, one.ranks)
        latency = links.latency_ns(one.operation, ranks) / before_ns if before_ns else 1.0
        size = busiest_bytes(one)
        if not size:
            return 1.0, latency
        old = links.payload_ns(one.operation, size, one.ranks)
        new = links.payload_ns(one.operation, size * uneven, ranks)
        if old is None or new is None:
            raise NotApplicableError(
                "the network is not known: nothing of known size crosses nodes today, and run.json does not "
                "name it"
            )
        return (new / old if old else 1.0), latency


def _world(facts: Facts) -> int:
    return facts.trace_set.world_size or len(facts.trace_set.ranks)


def _links(facts: Facts) -> Links:
    """A job that fills a part of one node fills as much of each."""
    links = links_of(facts)
    return replace(links, per_node=min(links.per_node, _world(facts)))
