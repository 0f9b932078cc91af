"""What several edits come to: of two that set the same thing the last counts, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceinsight.replay.edits.edit import Edit, NotApplicableError
from traceinsight.replay.edits.more_nodes import MoreNodes
from traceinsight.replay.edits.network import FasterNetwork, LargerBatch
from traceinsight.replay.edits.payload import NarrowerEmbeddings, QuantizedComms
from traceinsight.replay.edits.ranks import NoStraggler

_SET_A_VALUE = (QuantizedComms, FasterNetwork, MoreNodes)
_COMPOUND = (NarrowerEmbeddings, LargerBatch)
"""Twice by 2 is once by 4."""


def in_effect(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits to apply to a run, in order.

    A format on the wire, a network and a number of nodes replace those of earlier edits. Late ranks join
    those of earlier edits, for a rank in time holds nobody up.

    Raises:
        NotApplicableError: If an edit asks for what an earlier one has done.

    """
    kept: list[Edit] = []
    for edit in edits:
        same = [one for one in kept if type(one) is type(edit)]
        if not isinstance(edit, _COMPOUND) and any(one.text == edit.text for one in same):
            raise NotApplicableError("an earlier edit has done that already")
        if isinstance(edit, (*_SET_A_VALUE, NoStraggler)):
            kept = [one for one in kept if one not in same]
        kept.append(_joined(edit, same) if isinstance(edit, NoStraggler) else edit)
    return tuple(kept)


def _joined(edit: NoStraggler, earlier: Sequence[Edit]) -> NoStraggler:
    """With the ranks of an earlier one."""
    done = {rank for one in earlier if isinstance(one, NoStraggler) for rank in one.ranks}
    if done.issuperset(edit.ranks):
        raise NotApplicableError("an earlier edit has these ranks in time already")
    return replace(edit, ranks=tuple(sorted(done.union(edit.ranks)))) if done else edit
