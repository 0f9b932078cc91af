"""Replaying public and own runs unedited gives the measured steps; docs/accuracy.md has the figures."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import REPOSITORY

MEDIAN, WORST = 0.01, 0.03  # of the step, over the steps of a run

PUBLIC = (
    "dlrm_v100_8rank",
    "torchrec_v100_4rank/sst_sleep_pl_dense_after_backward_2",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_2",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_4",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_qcomm_trace",
    "nanogpt_h100_8rank",
)
SAMPLES = REPOSITORY / "sample_traces"
OWN = sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("run.json"))


def assert_explained(diagnosis: Any) -> None:
    replay = diagnosis.replay
    assert replay.predicted, replay.reason
    assert replay.residual_share <= MEDIAN
    assert replay.worst_step <= WORST


@pytest.mark.corpus
@pytest.mark.parametrize("folder", PUBLIC)
def test_public_runs(folder: str, diagnose_corpus: Callable[..., Any]) -> None:
    assert_explained(diagnose_corpus(folder))


def test_no_sample_was_missed() -> None:
    assert len(OWN) == 12  # six real, six simulated


@pytest.mark.parametrize("name", OWN)
def test_own_runs(name: str, diagnose: Callable[..., Any]) -> None:
    assert_explained(diagnose(SAMPLES / name))
