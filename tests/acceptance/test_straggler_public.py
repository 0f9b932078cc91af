"""The public runs with clocks moved by up to 10 ms per rank, files left out and kernels dropped."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.acceptance.straggler_jobs import groups, judged
from tests.disturb import losing, skewed, skews_ns, without_collective, without_ranks
from traceinsight.reading import load
from traceinsight.trace.recording import Recording

pytestmark = pytest.mark.corpus

DLRM, NANOGPT, HOME = "dlrm_v100_8rank", "nanogpt_h100_8rank", "torchrec_v100_4rank"
TORCHREC = (
    (f"{HOME}/sst_sleep_pl_dense_after_backward_2", None),
    (f"{HOME}/sst_long_a2a_optimizer_2", 1),
    (f"{HOME}/sst_long_a2a_optimizer_2", 2),
    (f"{HOME}/sst_long_a2a_optimizer_4", None),
    (f"{HOME}/sst_long_a2a_optimizer_qcomm_trace", None),
)
ROUNDING_NS = 2
"""Offsets are whole nanoseconds."""

Read = Callable[..., tuple[Recording, ...]]


@pytest.fixture(scope="module")
def recordings(corpus: Path) -> Read:
    @cache
    def read(folder: str, run: int | None = None) -> tuple[Recording, ...]:
        return tuple(load(str(corpus / folder), run=run, workers=1).recordings)

    return read


@pytest.mark.parametrize(("folder", "run"), [(DLRM, None), (NANOGPT, None), *TORCHREC])
def test_clocks_change_offsets_by_as_much_and_nothing_else(
    recordings: Read, folder: str, run: int | None
) -> None:
    plain = recordings(folder, run)
    ahead = skews_ns(plain, 1, per_rank=True)
    before, found = judged(plain)
    after, moved = judged(skewed(plain, ahead))
    change = [
        (after.clocks[rank].offset_ns or 0) - (before.clocks[rank].offset_ns or 0) - ahead[rank]
        for rank in ahead
    ]
    assert np.ptp(change) <= ROUNDING_NS  # another rank may have become the reference
    assert groups(moved) == groups(found)
    assert [one.absent_ranks for one in after.collectives] == [one.absent_ranks for one in before.collectives]
    for one, other in zip(found.stragglers, moved.stragglers, strict=True):
        assert other.lateness_ns.expected == pytest.approx(one.lateness_ns.expected, abs=ROUNDING_NS)
        assert other.ceiling_ns == pytest.approx(one.ceiling_ns, abs=100 * ROUNDING_NS)
        assert (other.confidence, other.cause) == (one.confidence, one.cause)


def test_the_late_group_of_dlrm_without_another_rank(recordings: Read) -> None:
    plain = recordings(DLRM)
    for absent in (0, 1, 3, 4, 5):
        assert groups(judged(without_ranks(plain, absent))[1]) == [[2, 6, 7]]
    assert groups(judged(without_ranks(plain, 2))[1]) == [[6, 7]]
    assert groups(judged(without_ranks(plain, 6))[1]) == [[2, 7]]


@pytest.mark.parametrize(("folder", "run"), TORCHREC)
def test_rank_2_with_other_files_missing_or_its_own(recordings: Read, folder: str, run: int | None) -> None:
    plain = recordings(folder, run)
    ahead = skews_ns(plain, 2, per_rank=True)
    for absent in (0, 1, 3):
        assert groups(judged(skewed(without_ranks(plain, absent), ahead))[1]) == [[2]]
    found = judged(skewed(without_ranks(plain, 2), ahead))[1]
    assert found.stragglers == ()
    assert found.not_judged is not None


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("folder", "run"), TORCHREC)
def test_rank_2_with_kernels_lost(recordings: Read, folder: str, run: int | None, seed: int) -> None:
    plain = recordings(folder, run)
    damaged = losing(plain, seed, dict.fromkeys(range(4), 0.02))
    damaged = without_collective(damaged, seed, 3)
    assert groups(judged(skewed(damaged, skews_ns(plain, seed, per_rank=True)))[1]) == [[2]]
