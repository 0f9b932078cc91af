"""The two statistics everything rests on."""

import pytest

from traceinsight.base.statistics import median, quartile_range


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
