"""TorchRec's and PyTorch's annotations of every generation, and the phase each stands for."""

import pytest

from traceinsight.base.labels import STEP_LABEL, is_payload_label, phase_of, without_batch_index

LABELS = {
    "input": [
        "## copy_batch_to_gpu ##", "## load_batch ##", "## wait_for_batch ##", "## copy_batch_to_gpu 12 ##",
        "## load_batch 3 ##", "## wait_for_batch 7 ##",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    ],
    "sparse_data_dist": [
        "## start_sparse_data_dist ##", "## start_sparse_data_dist 4 ##", "## wait_sparse_data_dist ##",
        "## wait_sparse_data_dist 4 ##", "## sparse_data_dist ##", "## all2all_data:kjt splits ##",
        "## all2all_data:kjt lengths ##", "## all2all_data:kjt values ##",
        "[splits_dist]_[ebc]_[table_wise]", "[tensors_dist]_[sparse_arch.ebc]_[row_wise]",
    ],
    "forward": [
        "## forward ##", "## forward 12 ##", "## All2All_Pooled_fwd ##", "## All2All_Seq_fwd ##",
        "## ReduceScatter_fwd ##", "## ReduceScatterV_fwd ##", "## alltoall_fwd_single ##",
        "[lookup]_[ebc]_[table_wise]", "[output_dist]_[ebc]_[row_wise]", "[output_dist_wait]_[ebc]_[data_p]",
        "DistributedDataParallel.forward",
    ],
    "backward": [
        "## backward ##", "## backward 12 ##", "## emb_backward ##", "## All2All_Pooled_bwd ##",
        "## All2All_Seq_bwd ##", "## ReduceScatter_bwd ##", "## ReduceScatterBase_bwd ##",
    ],
    "optimizer": ["## zero_grad ##", "## optimizer ##", "## optimizer 3 ##", "Optimizer.step#Adagrad.step"],
    "replica_sync": ["## dmp_collection_sync ##", "## dmp_collection_sync 5 ##"],
}  # fmt: skip


@pytest.mark.parametrize(("phase", "label"), [(p, one) for p, labels in LABELS.items() for one in labels])
def test_a_label_stands_for_its_phase(phase: str, label: str) -> None:
    assert phase_of(label) == phase


@pytest.mark.parametrize(
    "label",
    ["## encoder fp8 None ##", "## decoder fp16 None ##", "ProfilerStep#3", "nccl:all_to_all", "aten::mm"],
)
def test_what_runs_in_any_phase_tells_none(label: str) -> None:
    assert phase_of(label) is None


@pytest.mark.parametrize(
    ("label", "same_in_every_step"),
    [
        ("## copy_batch_to_gpu 17 ##", "## copy_batch_to_gpu ##"),
        ("## forward 0 ##", "## forward ##"),
        ("## wait_sparse_data_dist 123 ##", "## wait_sparse_data_dist ##"),
        ("## encoder fp8 None ##", "## encoder fp8 None ##"),
        ("## All2All_Pooled_fwd ##", "## All2All_Pooled_fwd ##"),
        ("[lookup]_[ebc]_[table_wise]", "[lookup]_[ebc]_[table_wise]"),
    ],
)
def test_the_batch_index_is_removed_and_nothing_else(label: str, same_in_every_step: str) -> None:
    assert without_batch_index(label) == same_in_every_step


def test_a_step_label_is_the_profilers_alone() -> None:
    match = STEP_LABEL.match("ProfilerStep#551")
    assert match is not None
    assert match[1] == "551"
    assert STEP_LABEL.match("ProfilerStep*") is None
    assert STEP_LABEL.match("my ProfilerStep#3") is None


@pytest.mark.parametrize(
    ("label", "payload"),
    [
        ("## All2All_Pooled_fwd ##", True),
        ("## all2all_data:kjt values ##", True),
        ("## dmp_collection_sync ##", True),
        ("[output_dist]_[ebc]_[table_wise]", True),
        ("## forward ##", False),
        ("## wait_sparse_data_dist 3 ##", False),
        ("## start_sparse_data_dist ##", False),
        ("## PooledEmbeddingsAwaitable wait() ##", False),
        ("nccl:all_to_all", False),
    ],
)
def test_a_payload_label_names_what_travels_not_the_phase_around_it(label: str, payload: bool) -> None:
    assert is_payload_label(label) is payload
