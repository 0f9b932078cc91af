"""Markdown fit for a comment on a pull request."""

from collections.abc import Callable

import pytest

from tests.report.diagnoses import CASES, late_rank, many_ranks
from traceinsight.report import FORMATS, ReportOptions

COMMENT_LIMIT = 65_536  # GitHub's, in characters


@pytest.mark.parametrize("case", ["late_rank", "single_rank"])
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{case}.md", FORMATS["markdown"].render(CASES[case](), ReportOptions()))


def test_the_verdict_comes_first_and_long_parts_are_folded() -> None:
    text = FORMATS["markdown"].render(late_rank(), ReportOptions())
    assert text.startswith("**Rank 5 comes late to the collectives:")
    shown = text[: text.index("<details>")]
    assert "### What to change next" in shown
    assert "| 5 late |" in shown
    assert text.count("<details>") == text.count("</details>") > 3


def test_what_was_not_judged_is_never_folded() -> None:
    text = FORMATS["markdown"].render(CASES["single_rank"](), ReportOptions())
    before = text[: text.index("### Not judged")]
    assert before.count("<details>") == before.count("</details>")


def test_it_fits_a_comment_at_any_number_of_ranks() -> None:
    assert len(FORMATS["markdown"].render(many_ranks(4096), ReportOptions())) < COMMENT_LIMIT / 4
