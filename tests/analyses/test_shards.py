"""Who owns which tables, what that costs, and which of them make a rank late. All times are in ns."""

from typing import Any

import pytest

from tests.trace.recordings import GEMM, MS, kernel, launched, mark, operator, recording, step
from traceinsight.analyses.shards import find_shards
from traceinsight.analyses.stragglers.overload import NO_TABLES, Overload, TableFacts, overload_of
from traceinsight.diagnosis import RankLoad, ShardRow
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import Recording
from traceinsight.trace.trace_set import TraceSet

LOOKUP = "void split_embedding_codegen_forward_unweighted_kernel<float>(int)"
UPDATE = "split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1"


def gpu_rank(rank: int, *lookup_ns: int) -> Recording:
    """Steps of 10 ms: the lookup, 1 ms of it again as update, 2 ms of other work beside the update."""
    rows: list[Any] = []
    for at, length in enumerate(lookup_ns):
        begin = at * 10 * MS
        lookup = kernel(LOOKUP, begin + MS, begin + MS + length, at * 10)
        update = kernel(UPDATE, begin + 6 * MS, begin + 7 * MS, at * 10 + 1)
        other = kernel(GEMM, begin + 6 * MS, begin + 8 * MS, at * 10 + 2, stream=8)
        rows.append(step(at, begin, begin + 9 * MS))
        rows += [launched(work, begin + 3000 * i) for i, work in enumerate([lookup, update, other], 1)]
    return recording(*rows, rank=rank, world_size=2)


def job(*recordings: Recording, **manifest: Any) -> TraceSet:
    return assemble(recordings, manifest=manifest or None)


def counts(ids: float, returned: float = 0.0) -> dict[str, float]:
    return {"ids_per_step": ids, "read_bytes_per_step": 64 * ids, "returned_bytes_per_step": returned}


def test_lookup_time_is_the_median_over_steps_of_the_embedding_kernels() -> None:
    # Lookups of 1, 2, 4 ms and an update of 1 ms each: 2, 3, 5 ms; the median is 3 ms. Rank 1: 1 + 1 ms.
    found = find_shards(job(gpu_rank(0, MS, 2 * MS, 4 * MS), gpu_rank(1, MS, MS, MS)))
    assert [(load.rank, load.lookup_ns, load.tables, load.ids_per_step) for load in found.loads] == [
        (0, 3 * MS, None, None),
        (1, 2 * MS, None, None),
    ]
    (balance,) = found.balance
    # The mean of 3 and 2 ms is 2.5 ms; 3 / 2.5 = 1.2.
    assert (balance.measure, balance.largest_rank, balance.mean) == ("lookup_ns", 0, 2.5 * MS)
    assert balance.imbalance == pytest.approx(1.2)
    assert found.rows == ()


def test_a_run_without_embeddings_has_no_loads() -> None:
    work = launched(kernel(GEMM, MS, 2 * MS, 1), 1000)
    found = find_shards(job(recording(step(0, 0, 9 * MS), work, rank=0)))
    assert (found.rows, found.loads, found.balance, found.notes) == ((), (), (), ())


def test_on_a_cpu_the_lookup_annotation_counts_and_waiting_inside_does_not() -> None:
    rows = [
        step(0, 0, 10 * MS),
        mark("[lookup]_[tables]_[table_wise]", MS, 4 * MS),
        operator("fbgemm::split_embedding_codegen_forward_cpu", MS, 2 * MS),
        operator("c10d::alltoall_base_", 3 * MS, 4 * MS),
        operator("fbgemm::split_embedding_backward_codegen_rowwise_adagrad_cpu", 6 * MS, 7 * MS),
    ]
    (load,) = find_shards(job(recording(*rows, rank=0, backend="gloo"))).loads
    assert load.lookup_ns == 3 * MS  # 3 ms of lookup less 1 ms in the collective, and 1 ms of backward


def test_shares_are_of_the_ranks_ids_and_of_all() -> None:
    tables = {"a": {"0": counts(300)}, "b": {"0": counts(100), "1": counts(400)}}
    found = find_shards(job(gpu_rank(0, MS), gpu_rank(1, MS), measured_tables={"tables": tables}))
    # Rank 0 looks up 300 + 100 ids, rank 1 400; 800 in all.
    assert [(row.rank, row.table, row.share_of_rank, row.share_of_all) for row in found.rows] == [
        (0, "a", 0.75, 0.375),
        (0, "b", 0.25, 0.125),
        (1, "b", 1.0, 0.5),
    ]
    assert [(load.ids_per_step, load.tables) for load in found.loads] == [(400, 2), (400, 1)]


def test_a_rank_without_tables_has_no_load_and_one_that_did_not_report_an_unknown_one() -> None:
    measured = {"tables": {"a": {"0": counts(90)}}}
    ranks = [gpu_rank(rank, MS) for rank in range(3)]
    told = find_shards(job(*ranks, measured_tables=measured))
    assert [load.ids_per_step for load in told.loads] == [90, 0, 0]
    assert {one.measure: one.imbalance for one in told.balance}["ids_per_step"] == 3.0  # 90 / (90 / 3)
    silent = find_shards(job(*ranks, measured_tables={**measured, "missing_ranks": [2]}))
    assert [load.ids_per_step for load in silent.loads] == [90, 0, None]
    assert {one.measure: one.imbalance for one in silent.balance}["ids_per_step"] == 2.0


def test_planner_estimates_are_summed_per_rank() -> None:
    estimates = {"a": [{"rank": 0, "fwd_compute_ms": 1.5}], "b": [{"rank": 0, "bwd_comms_ms": 0.5}]}
    found = find_shards(job(gpu_rank(0, MS), planner_estimates=estimates))
    assert [row.planned_ns for row in found.rows] == [1_500_000, 500_000]
    assert found.loads[0].planned_ns == 2_000_000


def test_a_malformed_manifest_is_noted_and_costs_nothing_else() -> None:
    found = find_shards(job(gpu_rank(0, MS), measured_tables="\x1b[31m", sharding_plan={"a": 7}))
    assert [(note.code, note.count) for note in found.notes] == [("malformed-manifest", 2)]
    assert found.loads[0].lookup_ns == 2 * MS


# Whose lookups make them late -------------------------------------------------------------------


def load(rank: int, lookup_ms: float | None, ids: float | None) -> RankLoad:
    return RankLoad(
        rank=rank, tables=1, lookup_ns=None if lookup_ms is None else round(lookup_ms * MS),
        sent_bytes_per_step=None, ids_per_step=ids, read_bytes_per_step=None, returned_bytes_per_step=None,
        planned_ns=None,
    )  # fmt: skip


def row(rank: int, table: str, ids: float) -> ShardRow:
    return ShardRow(
        rank=rank, table=table, rows=None, dim=None, ids_per_step=ids, share_of_rank=0.5, share_of_all=0.1,
        read_bytes_per_step=None, returned_bytes_per_step=None, planned_ns=None,
    )  # fmt: skip


HOT = TableFacts(
    # The mean shard has (100 + 100 + 700 + 100) / 4 = 250 ids; 700 is 2.8 times that.
    shards=[row(0, "a", 100), row(0, "b", 100), row(1, "hot", 700), row(1, "c", 100)],
    loads=[load(0, 10, 200), load(1, 50, 800)],
)


def test_the_hot_table_of_a_late_rank_is_named_with_its_ids() -> None:
    overload = overload_of([1], 40 * MS, HOT)
    assert overload.tables == ("hot",)
    assert "take 40.0 ms more" in overload.sentence  # 50 - 10
    assert "rank 1 looks up 800 ids per step, the others 200" in overload.sentence
    assert "700 (50.0%) in hot, against 250 in a mean shard" in overload.sentence


def test_the_lookups_must_explain_half_of_the_lateness() -> None:
    assert overload_of([1], 80 * MS, HOT).tables == ("hot",)  # 40 of 80 ms
    assert overload_of([1], 81 * MS, HOT) == Overload()
    assert overload_of([0], 10 * MS, HOT) == Overload()  # rank 0 looks up for less time than rank 1


def test_ids_just_below_and_at_a_fifth_more() -> None:
    def with_ids(ids: float) -> TableFacts:
        return TableFacts([row(1, "t", ids)], [load(0, 10, 1000), load(1, 50, ids), load(2, 10, 1000)])

    assert overload_of([1], 40 * MS, with_ids(1199)).tables == ()
    assert overload_of([1], 40 * MS, with_ids(1200)).tables == ("t",)


def test_without_counts_the_lookups_are_told_and_no_table() -> None:
    overload = overload_of([1], 40 * MS, TableFacts((), [load(0, 10, None), load(1, 50, None)]))
    assert overload.sentence == "Embedding lookups take 40.0 ms more there."
    assert overload.tables == ()


def test_nothing_known_is_nothing_said() -> None:
    assert overload_of([1], 40 * MS, NO_TABLES) == Overload()
    unknown = TableFacts(HOT.shards, [load(0, None, 200), load(1, None, 800)])
    assert overload_of([1], 40 * MS, unknown) == Overload()


def test_a_rank_that_owns_too_many_even_tables_is_told_its_largest() -> None:
    # 3 tables of 100 against 1 of 100: the surplus of 200 ids is two tables, none is heavy.
    shards = [row(0, "a", 100), row(1, "b", 100), row(1, "c", 100), row(1, "d", 100)]
    facts = TableFacts(shards, [load(0, 10, 100), load(1, 30, 300)])
    assert overload_of([1], 20 * MS, facts).tables == ("b", "c")
