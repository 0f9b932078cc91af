"""Process groups that collectives do not name, or name without their members, and bare SendRecv kernels."""

from dataclasses import replace

import pytest

from tests.analyses.trace_sets import stragglers_of
from tests.trace.recordings import (
    ALL_TO_ALL,
    MS,
    US,
    Row,
    kernel,
    launched,
    lockstep,
    mark,
    recording,
    step,
)
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import CommArgs, ProcessGroup, Recording

WORLD = ProcessGroup("0", "default_pg", (0, 1, 2, 3))
HALVES = (ProcessGroup("1", None, (0, 1)), ProcessGroup("2", None, (2, 3)))


def job(args: CommArgs | None, *groups: ProcessGroup) -> list[Recording]:
    """Rank 1 is 2 ms late at every exchange of four ranks."""
    made = lockstep(lambda rank, number, at: 5 * MS + (2 * MS if rank == 1 else 0), args=args)
    return [replace(one, process_groups=groups, _cache={}) for one in made]


def test_collectives_without_a_name_are_of_the_only_group_there_is() -> None:
    trace_set = assemble(job(None, WORLD, replace(WORLD, name="7")))  # the same ranks twice are one group
    assert {one.ranks for one in trace_set.collectives} == {(0, 1, 2, 3)}
    assert trace_set.notes == ()


def test_collectives_without_a_name_are_not_matched_where_there_are_several_groups() -> None:
    recordings = job(None, WORLD, *HALVES)
    trace_set = assemble(recordings)
    assert {len(one.ranks) for one in trace_set.collectives} == {1}
    assert {clock.offset_ns for clock in trace_set.clocks.values()} == {None}
    assert [(note.code, note.severity) for note in trace_set.notes] == [("nameless-collectives", "warning")]
    judgement = stragglers_of(recordings)
    assert judgement.stragglers == ()
    assert judgement.not_judged == "no collective of the analysed steps could be matched across ranks"


def test_a_named_group_has_the_members_that_the_job_was_configured_with() -> None:
    # The arguments cut long lists of ranks short, and those are not read.
    whole = assemble(job(CommArgs(collective="all_to_allv", group_name="0"), WORLD, *HALVES))
    assert {one.group for one in whole.collectives} == {(0, 1, 2, 3)}
    assert all(one.complete for one in whole.collectives)


def stage(*annotations: str, label: str | None = None) -> Recording:
    """A step with a bare SendRecv kernel, perhaps under a label, and one under each of the annotations."""
    rows: list[Row] = [step(0, 0, 10 * MS)]
    for at, name in enumerate([None, *annotations]):
        moment = (1 + at) * MS
        rows += launched(
            kernel(ALL_TO_ALL, moment + 10 * US, moment + 90 * US, at + 1, stream=20), moment + US
        )
        if name or label:
            rows.append(mark(name or label or "", moment, moment + 5 * US))
    return recording(rows, world_size=2, backend="nccl")


@pytest.mark.parametrize(
    ("annotations", "label", "bare"),
    [
        ((), None, "all_to_all"),
        (("nccl:all_to_all",), None, "all_to_all"),
        (("nccl:send 0->1", "nccl:recv 0<-1"), None, "send_recv"),
        (("nccl:recv 0<-1", "nccl:all_to_all"), None, "unknown"),
        (("nccl:recv 0<-1",), "## All2All_Pooled_fwd ##", "all_to_all"),
    ],
)
def test_what_a_bare_send_recv_kernel_is(annotations: tuple[str, ...], label: str | None, bare: str) -> None:
    (first, *_) = assemble([stage(*annotations, label=label)]).collectives
    assert first.operation == bare
    assert first.synchronising == (bare == "all_to_all")
