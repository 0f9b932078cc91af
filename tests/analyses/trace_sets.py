"""Trace sets and measurements from recordings, in one call."""

from collections.abc import Sequence

from tests.trace.recordings import recording
from traceinsight.analyses.partition import partition
from traceinsight.analyses.stragglers import StragglerJudgement, find_stragglers
from traceinsight.diagnosis import Partition
from traceinsight.trace.activity import activities
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import Recording
from traceinsight.trace.trace_set import TraceSet

EPOCH_NS = 1_700_000_000_000_000_000


def one_rank(*rows: object, backend: str | None = None) -> TraceSet:
    """A trace set of a single rank whose clock shows the time of day."""
    return assemble([recording(*rows, backend=backend, shift_ns=EPOCH_NS)])


def partition_of(trace_set: TraceSet) -> list[Partition]:
    return partition(trace_set, activities(trace_set))


def stragglers_of(recordings: Sequence[Recording]) -> StragglerJudgement:
    trace_set = assemble(recordings)
    activity = activities(trace_set)
    return find_stragglers(trace_set, activity, partition(trace_set, activity))
