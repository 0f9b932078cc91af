"""The section on embedding load: by rank, and the shards behind it."""

import json
from pathlib import Path

from traceinsight import api
from traceinsight.report.document import Table
from traceinsight.report.options import ReportOptions
from traceinsight.report.sections.shards import section

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"


def tables(name: str) -> list[Table]:
    found = section(api.analyze(SAMPLES / name, workers=1), ReportOptions())
    return [block for block in found.blocks if isinstance(block, Table)] if found else []


def test_the_hot_partition_is_the_first_shard_and_its_owner_the_heaviest() -> None:
    by_rank, shards = tables("hot_partition")
    assert [row[0] for row in by_rank.rows] == ["0", "1", "2", "3 late", "max / mean"]
    # Ids of the four ranks: 766.4, 759.8, 771.8 and 1,769.2; 1,769.2 over their mean, 1,016.8, is 1.74.
    assert by_rank.rows[3][4] == "1,769.2"
    assert by_rank.rows[4][4] == "1.74x"
    assert shards.rows[0][:3] == ("table_1_part_3", "3", "988.4")


def test_what_was_not_counted_is_not_shown_as_zero() -> None:
    (by_rank,) = tables("late_rank")  # its manifest has a plan, and no counted ids
    ids = by_rank.columns.index(next(column for column in by_rank.columns if column.header == "ids"))
    assert {row[ids] for row in by_rank.rows} == {"n/a"}


def test_a_run_without_embeddings_has_no_such_section(tmp_path: Path) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 5, "pid": 0, "tid": 7}
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": [kernel]}))
    assert section(api.analyze(tmp_path, workers=1), ReportOptions()) is None
