"""What becomes of the step time when edits are applied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceinsight.replay.edits.edit import Edit, Explanation, NotApplicableError, explanation_of
from traceinsight.replay.edits.sequence import in_effect
from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import Graph, NodeKind
from traceinsight.replay.prepared import Prepared
from traceinsight.replay.rank_parts import RankParts, rank_parts
from traceinsight.replay.solve import expected_step_ns

LONGEST_STEP_NS = 2**53
"""104 days. A prediction beyond it comes from a size that cannot be, such as a mistyped table in run.json."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Step time after the edits, ns. ``low`` is the most and ``high`` the least that may be gained.

    The interval carries the replay's residual, what the profiler lost, and each edit's own uncertainty, all
    relative to the change: a step that becomes k times shorter may become k^(1 ± uncertainty) times shorter.
    Where an edit changes the number of examples, the larger change counts: of the step, or of its time per
    example. ``high`` besides allows for assumptions of edits that may not hold
    (``Explanation.slower_factor``).
    ``examples_factor``: examples per step against today. ``work_factor``: device work (without collectives)
    against today. ``explanations`` has what each edit that counts (:func:`in_effect`) says of this run.
    """

    edits: tuple[str, ...]
    before_ns: float
    low_ns: float
    expected_ns: float
    high_ns: float
    examples_factor: float
    work_factor: float
    explanations: tuple[Explanation, ...] = ()

    @property
    def per_example_ns(self) -> float:
        """Step time over today's number of examples per step: comparable where the batch grows."""
        return self.expected_ns / self.examples_factor


@dataclass(frozen=True, slots=True)
class _State:
    """The run after some edits: its graphs, their step length, and how far that may be off.

    ``doubt`` is the natural logarithm of the factor by which it may be longer or shorter: a step that shrinks
    to a fifth is doubted by more than its gain's share, and no step can become shorter than nothing.
    """

    graphs: tuple[Graph, ...]
    length_ns: float
    doubt: float
    said: tuple[Explanation, ...]


class Bench:
    """A run on the bench: apply edits one after another and read off the step time.

    Gains are never added: each edit is applied to the graph that the ones before have left. What all but the
    last have left is kept, so that many may be tried on top of the same ones.
    """

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._today = _State(prepared.graphs, expected_step_ns(prepared.graphs), 0.0, ())
        self._kept: tuple[tuple[str, ...], _State] = ((), self._today)
        self._work_ns = _work_ns(prepared.graphs)

    def predict(self, edits: Sequence[Edit]) -> Prediction:
        """The step time with all these edits, in this order.

        Raises:
            NotApplicableError: If one of them means nothing for this run, or leads to a step that cannot be.

        """
        made = in_effect(edits)
        state = self._with(made)
        today_ns = self._today.length_ns
        if not 0 <= state.length_ns <= max(LONGEST_STEP_NS, today_ns):  # not a number is no length either
            raise NotApplicableError("by the sizes that were recorded, a step would last for months")
        scale = self._prepared.step_ns / today_ns if today_ns else 1.0
        doubt = state.doubt + self._unexplained(today_ns, state.length_ns)
        expected = state.length_ns * scale
        return Prediction(
            edits=tuple(edit.text for edit in edits),
            before_ns=self._prepared.step_ns,
            low_ns=expected / math.exp(doubt),
            expected_ns=expected,
            high_ns=expected * math.exp(doubt) * math.prod(one.slower_factor for one in state.said),
            examples_factor=math.prod(one.examples_factor for one in state.said),
            work_factor=_work_ns(state.graphs) / self._work_ns if self._work_ns else 1.0,
            explanations=_with_replaced(state.said, edits, made),
        )

    def _unexplained(self, before_ns: float, after_ns: float) -> float:
        """The doubt from what the graph misses: the residual, guessed kernels, and what lacks a rank.

        An edit may shorten a collective that lacks a rank, or the waiting in it, where the replay does not.
        """
        lost = self._prepared.lost
        change = _log_ratio(before_ns, after_ns)
        held_ns = min(lost.lacking_share * before_ns, after_ns / 2) if change else 0.0
        missed = self._prepared.residual.worst_share + lost.guessed_share
        return change * missed - math.log1p(-held_ns / max(after_ns, 1.0))

    def parts(self, edits: Sequence[Edit]) -> list[RankParts]:
        """Where the step of each rank goes with these edits, as :func:`rank_parts` has it."""
        return rank_parts(self._prepared.trace_set, self._with(in_effect(edits)).graphs)

    def _with(self, edits: tuple[Edit, ...]) -> _State:
        if not edits:
            return self._today
        key = tuple(edit.text for edit in edits)
        if self._kept[0] == key:
            return self._kept[1]
        *earlier, edit = edits
        before = self._with(tuple(earlier))
        self._kept = (key[:-1], before)
        facts = [Facts(self._prepared.trace_set, graph) for graph in before.graphs]
        graphs = tuple(edit.apply(one.graph, one) for one in facts)
        length = expected_step_ns(graphs)
        said = explanation_of(edit, facts[0]) if facts else Explanation()
        uncertainty = edit.uncertainty if said.uncertainty is None else said.uncertainty
        # Where a step holds more examples, staying as long is a change of its own that may be off.
        per_example_ns = length / said.examples_factor
        change = max(_log_ratio(before.length_ns, length), _log_ratio(before.length_ns, per_example_ns))
        doubt = before.doubt + change * uncertainty
        return _State(graphs, length, doubt, (*before.said, said))


def _with_replaced(
    said: tuple[Explanation, ...], edits: Sequence[Edit], made: Sequence[Edit]
) -> tuple[Explanation, ...]:
    """The last edit also says which earlier ones it replaces."""
    gone = [one.text for one in edits[:-1] if type(one) is type(edits[-1]) and one not in made]
    if not gone or made[-1] != edits[-1]:
        return said
    detail = "; ".join(filter(None, (f"counts instead of {gone[-1]}", said[-1].detail)))
    return (*said[:-1], replace(said[-1], detail=detail))


def _log_ratio(before_ns: float, after_ns: float) -> float:
    """Size of the change as a factor, as logarithm; nanoseconds below one are taken for one."""
    return abs(math.log(max(before_ns, 1.0) / max(after_ns, 1.0)))


def _work_ns(graphs: Sequence[Graph]) -> float:
    """Device work of all ranks; 0 on CPU ranks, whose compute is host time."""
    return sum(float(one.nodes.duration_ns[one.nodes.kind == NodeKind.WORK].sum()) for one in graphs)
