"""The other public traces: each gives the answer that its facts allow, and says what it cannot judge."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.acceptance.reading import assert_useful, rules
from tests.oracles import RawTrace

pytestmark = pytest.mark.corpus

NANOGPT = "nanogpt_h100_8rank"
RANKING_128 = "ranking_2_of_128"
LOADER_FILES = {
    "num_workers_0": (
        "worker0.1623143089861.pt.trace.json.gz",
        "worker0.1623143566756.pt.trace.json.gz",
        "worker0.pt.trace.json.gz",
        "worker0.pt.trace.v2d19c634.json.gz",
    ),
    "num_workers_4": (
        "worker0.1623212756351.pt.trace.json.gz",
        "worker0.1623213129365.pt.trace.json.gz",
        "worker0.pt.trace.json.gz",
        "worker0.pt.trace.v7bd25bd0.json.gz",
    ),
}


class TestRankingTwoOf128:
    def test_the_126_absent_ranks_are_named(self, diagnose_corpus: Callable[..., Any]) -> None:
        run = diagnose_corpus(RANKING_128).run
        assert run.world_size == 128
        assert run.ranks == [0, 1]
        assert run.missing_ranks == list(range(2, 128))

    def test_no_straggler_is_claimed(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus(RANKING_128)
        assert diagnosis.stragglers == []
        assert "straggler" not in rules(diagnosis)

    def test_what_needs_the_absent_ranks_is_not_judged(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus(RANKING_128)
        assert "straggler" in {n.rule for n in diagnosis.not_judged}
        assert all(n.reason and n.capture_hint for n in diagnosis.not_judged)

    def test_waiting_is_not_told_from_transfer(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus(RANKING_128)
        assert {c.transfer_ns for c in diagnosis.collectives} <= {None}
        assert all(p.exposed_comm_transfer_ns == 0 for p in diagnosis.partition)

    def test_fp8_quantization_is_recognised(self, diagnose_corpus: Callable[..., Any]) -> None:
        # Both files hold `## encoder fp8 None ##` and fbgemm's FP8 quantize kernels.
        diagnosis = diagnose_corpus(RANKING_128)
        (quantize,) = [k for k in diagnosis.kernels if "quant" in k.family]
        assert quantize.busy_ns > 0
        assert any("fp8" in name.lower() for name in quantize.top_kernels)

    def test_the_answer_adds_up(self, diagnose_corpus: Callable[..., Any]) -> None:
        assert_useful(diagnose_corpus(RANKING_128))


class TestLoaderBoundPair:
    """Time in the loader / CPU steps: 18-40 % with no worker, at most 1.2 % with four."""

    @pytest.mark.parametrize("folder", LOADER_FILES)
    def test_the_folders_answer_is_the_known_one(
        self, diagnose_corpus: Callable[..., Any], folder: str
    ) -> None:
        diagnosis = diagnose_corpus(f"loader_bound_pair/{folder}")
        assert ("input-bound" in rules(diagnosis)) == (folder == "num_workers_0")
        assert len(diagnosis.run.files) == 1
        assert len(diagnosis.run.other_runs) == 3

    @pytest.mark.parametrize("name", LOADER_FILES["num_workers_0"])
    def test_without_workers_every_capture_is_input_bound(
        self, diagnose_corpus: Callable[..., Any], name: str
    ) -> None:
        assert "input-bound" in rules(diagnose_corpus(f"loader_bound_pair/num_workers_0/{name}"))

    @pytest.mark.parametrize("name", LOADER_FILES["num_workers_4"])
    def test_with_workers_no_capture_is_input_bound(
        self, diagnose_corpus: Callable[..., Any], name: str
    ) -> None:
        assert "input-bound" not in rules(diagnose_corpus(f"loader_bound_pair/num_workers_4/{name}"))


class TestNanogpt:
    def test_steps_take_34_to_51_ms_on_the_host(self, diagnose_corpus: Callable[..., Any]) -> None:
        times = [t.cpu_ns for t in diagnose_corpus(NANOGPT).step_times]
        assert len(times) >= 8 * 3
        assert all(34_000_000 <= t <= 51_000_000 for t in times)

    def test_kernels_without_arguments_still_match(
        self, diagnose_corpus: Callable[..., Any], corpus: Path
    ) -> None:
        # Ranks hold 76-84 NCCL kernels, 20-28 of them launched before the capture and without arguments.
        # They end alike, so the last 76 of each rank belong together and at most 84 - 76 = 8 stay alone.
        counts = []
        for path in (corpus / NANOGPT).iterdir():
            kernels = RawTrace.read(path).communication()
            counts.append(len(kernels))
            assert 20 <= sum("Collective name" not in k.args for k in kernels) <= 28
        assert (min(counts), max(counts)) == (76, 84)
        collectives = diagnose_corpus(NANOGPT).collectives
        whole = [c for c in collectives if c.ranks == list(range(8)) and not c.unmatched_ranks]
        assert len(collectives) - len(whole) <= 8
        assert len(whole) >= 14 * len(diagnose_corpus(NANOGPT).run.steps) - 20
        assert all(c.transfer_ns is not None for c in whole if c.synchronising)

    def test_the_answer_adds_up(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus(NANOGPT)
        assert_useful(diagnosis)
        assert diagnosis.run.ranks == list(range(8))
        assert diagnosis.run.missing_ranks == []


class TestSingleFiles:
    def test_gpu_events_only(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus("gpu_only_mi210")
        assert_useful(diagnosis)
        assert diagnosis.partition
        assert sum(p.compute_ns for p in diagnosis.partition) > 0
        assert diagnosis.not_judged  # no host side: neither input nor launch overhead can be judged
        assert all(t.cpu_ns is None for t in diagnosis.step_times)

    def test_a_file_without_rank(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus("no_rank")
        assert_useful(diagnosis)
        assert len(diagnosis.run.files) == 1
        assert diagnosis.not_judged

    def test_a_rank_without_gpu(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus("cpu_only_rank34")
        assert_useful(diagnosis)
        assert diagnosis.run.ranks == [34]
        assert diagnosis.run.world_size == 300
        assert diagnosis.run.missing_ranks == [r for r in range(300) if r != 34]
        assert diagnosis.run.backend == "gloo"
        assert diagnosis.stragglers == []
        assert diagnosis.not_judged

    def test_absolute_stamps_of_16_digits(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus("ns_absolute_ts")
        assert_useful(diagnosis)
        assert diagnosis.run.world_size == 1
        assert diagnosis.run.missing_ranks == []

    def test_no_step_of_16_digit_stamps_is_off_by_more_than_a_nanosecond(
        self, diagnose_corpus: Callable[..., Any], corpus: Path
    ) -> None:
        (path,) = (corpus / "ns_absolute_ts").iterdir()
        steps = {s.number: s.end - s.start for s in RawTrace.read(path).steps}
        times = {t.step: t.cpu_ns for t in diagnose_corpus("ns_absolute_ts").step_times}
        assert len(times) >= 3
        assert all(abs(times[step] - steps[step]) <= 1 for step in times)

    def test_an_amd_rank_of_eight(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus("mi300x_resnet_rank0_of_8")
        assert_useful(diagnosis)
        assert diagnosis.run.missing_ranks == list(range(1, 8))
        assert "MI300" in (diagnosis.run.device or "")
        assert diagnosis.collectives
        assert diagnosis.stragglers == []
        assert "straggler" in {n.rule for n in diagnosis.not_judged}

    def test_an_a100_rank_with_arguments(self, diagnose_corpus: Callable[..., Any]) -> None:
        # 7 875 584 floats in its largest all-reduce, in every step: 31 502 336 bytes.
        diagnosis = diagnose_corpus("a100_ddp_nccl_args")
        assert_useful(diagnosis)
        assert diagnosis.run.missing_ranks == [1]
        assert max(c.bytes for c in diagnosis.collectives if c.bytes is not None) == 31_502_336

    def test_torchrec_labels_of_a_production_rank(self, diagnose_corpus: Callable[..., Any]) -> None:
        diagnosis = diagnose_corpus("ranking_a100_rank0_of_16")
        assert_useful(diagnosis)
        assert diagnosis.run.missing_ranks == list(range(1, 16))
        labels = " ".join(str(row.label) for row in diagnosis.communication).lower()
        assert "kjt" in labels
        assert "alltoall_fwd_single" in labels


@pytest.mark.parametrize("folder", ["gpu_only_mi210", "cpu_only_rank34", "mi300x_resnet_rank0_of_8"])
def test_a_diagnosis_survives_its_own_json(diagnose_corpus: Callable[..., Any], folder: str) -> None:
    diagnosis = diagnose_corpus(folder)
    text = msgspec.json.encode(diagnosis)
    assert msgspec.json.decode(text, type=type(diagnosis)) == diagnosis
