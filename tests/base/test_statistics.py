"""The statistics everything rests on."""

import numpy as np
import pytest

from traceinsight.base.statistics import median, median_of_others, quartile_range


@pytest.mark.parametrize(
    ("samples", "middle"), [([3], 3), ([1, 9], 5), ([9, 1, 2], 2), ([1, 2, 3, 100], 2.5)]
)
def test_the_median(samples: list[int], middle: float) -> None:
    assert median(samples) == middle


def test_no_samples_have_no_median() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median([])


def test_quartiles_of_five_and_of_one() -> None:
    assert quartile_range([5, 1, 3, 2, 4]) == (2, 3, 4)
    assert quartile_range([7]) == (7, 7, 7)


@pytest.mark.parametrize("count", range(2, 9))
def test_the_median_of_others_is_that_of_a_row_without_the_entry(count: int) -> None:
    rows = np.random.default_rng(count).integers(0, 6, (20, count)).astype(np.float64)
    expected = [[np.median(np.delete(row, at)) for at in range(count)] for row in rows]
    assert median_of_others(rows).tolist() == expected
    assert median_of_others(rows[0]).tolist() == expected[0]
