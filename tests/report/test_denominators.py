"""No percentage without its denominator, checked on the document that all readable formats draw."""

import re
from collections.abc import Iterator

import pytest

from tests.report.diagnoses import CASES
from traceinsight.report.build import build
from traceinsight.report.document import (
    Block,
    Bullets,
    Column,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
)
from traceinsight.report.options import ReportOptions

PERCENT = re.compile(r"\d%")
OF = re.compile(r"\d%(?: of (?:the|it|all)\b|[^.;%]* of the )")


def texts(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield block.text
    elif isinstance(block, Facts):
        yield from (text for _, text in block.rows)
    elif isinstance(block, Bullets):
        yield from block.lines


def bare_columns(table: Table) -> Iterator[str]:
    """Columns of percentages that neither the header's own symbol nor the caption explains."""
    for index, column in enumerate(table.columns):
        if not any(PERCENT.search(row[index]) for row in table.rows):
            continue
        meaning = table.caption
        if "%" in column.header:
            _, found, meaning = table.caption.partition(f"{column.header} =")
            if not found:
                yield column.header
                continue
        if not re.search(r"(?:% of|share of) (?:the|each)", meaning):
            yield column.header


def without_denominator(document: Document) -> list[str]:
    bare = []
    prose = [document.verdict, document.basis, document.footer]
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Table):
                bare += [f"{section.title}: column {header}" for header in bare_columns(block)]
            else:
                prose += texts(block)
    for text in prose:
        # A threshold in the same sentence ("1.9% of the step, below 5.0%") has the denominator before it.
        bare += [s for s in re.split(r"(?<=\.)\s+", text) if PERCENT.search(s) and not OF.search(s)]
    return bare


@pytest.mark.parametrize("all_ranks", [False, True])
@pytest.mark.parametrize("case", [case for case in CASES if case != "hostile"])
def test_every_percentage_names_its_denominator(case: str, all_ranks: bool) -> None:
    assert without_denominator(build(CASES[case](), ReportOptions(all_ranks=all_ranks))) == []


def test_the_check_sees_a_percentage_without_one() -> None:
    table = Table("Some numbers", (Column("rank"), Column("wait"), Column("% x")), (("0", "5.0%", "7.0%"),))
    text = Paragraph("Rank 3 waits 24%. It computes 50% of the step.")
    facts = Facts((("Gain", "15.0% faster"),))
    document = Document("Bad: 12% idle.", "", (Section("Bad", (table, text, facts)),), "")
    assert without_denominator(document) == [
        "Bad: column wait",
        "Bad: column % x",
        "Bad: 12% idle.",
        "Rank 3 waits 24%.",
        "15.0% faster",
    ]
