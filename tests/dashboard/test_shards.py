"""The page of shards: who owns what, what stands out, and the placement that is proposed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.conftest import REPOSITORY
from tests.dashboard.test_pages import html_of, link
from tests.report.diagnoses import HOSTILE_NAME, late_rank
from traceinsight.diagnosis import Diagnosis, RankLoad, ShardRow
from traceinsight.diagnosis.placement import PlacedShard, Placement, RankCost
from traceinsight.report import FORMATS, ReportOptions

from dashboard.charts.balance import balance_map, heaviest, heavy_bars, planned_against_counted  # isort: skip
from dashboard.charts.shards import HEAVY_WORDS, cost_of, load_bars  # isort: skip
from dashboard.theme import LIGHT  # isort: skip
from dashboard.views.shards import hot_words, placement_csv, shard_rows, tiles  # isort: skip

SAMPLE = REPOSITORY / "sample_traces" / "hot_partition"


def shard(table: str, rank: int, ids: float | None, planned_ns: int | None = None) -> ShardRow:
    """Every id reads 1,000 bytes; 500 bytes go back in any case."""
    return ShardRow(
        rank=rank, table=table, rows=100, dim=8, ids_per_step=ids, share_of_rank=None, share_of_all=None,
        read_bytes_per_step=None if ids is None else 1_000 * ids,
        returned_bytes_per_step=None if ids is None else 500.0,
        planned_ns=planned_ns,
    )  # fmt: skip


def load(rank: int, lookup_ns: int | None, ids: float | None) -> RankLoad:
    return RankLoad(
        rank=rank, tables=2, lookup_ns=lookup_ns, sent_bytes_per_step=None, ids_per_step=ids,
        read_bytes_per_step=None, returned_bytes_per_step=None, planned_ns=None,
    )  # fmt: skip


def two_ranks(**changes: Any) -> Diagnosis:
    """Rank 0 owns "a" (6 ids) and a part of "b" (2 ids), rank 1 the other part of "b" (1 id)."""
    shards = [shard("a", 0, 6.0, 1_000), shard("b", 0, 2.0, 1_000), shard("b", 1, 1.0, 1_000)]
    loads = [load(0, 3_000_000, 8.0), load(1, 1_000_000, None)]
    return replace(late_rank(), **({"shards": shards, "rank_loads": loads} | changes))


def proposal() -> Placement:
    """Shards of 6, 2 and 1 MB: the 2 move to rank 1."""
    owners = [("a", 0, 0, 6e6), ("b", 0, 1, 2e6), ("b", 1, 1, 1e6)]
    return Placement(
        shards=[
            PlacedShard(
                table=table, rows=100, dim=8, rank=rank, proposed_rank=new, movable=True, cost_bytes=cost
            )
            for table, rank, new, cost in owners
        ],
        ranks=[
            RankCost(rank=0, today_bytes=8e6, proposed_bytes=6e6),
            RankCost(rank=1, today_bytes=1e6, proposed_bytes=3e6),
        ],
        before=8 / 4.5, after=6 / 4.5, moved=1, measured=True, source="measured bytes",
    )  # fmt: skip


@pytest.fixture
def report(tmp_path: Path) -> Any:
    def write(diagnosis: Diagnosis) -> Path:
        path = tmp_path / "report.json"
        path.write_text(FORMATS["json"].render(diagnosis, ReportOptions()), encoding="utf-8")
        return path

    return write


def titles(app: Any) -> list[str]:
    return [one.value for one in app.subheader]


def test_todays_placement_is_beside_the_proposed_one(open_app: Any) -> None:
    app = open_app(SAMPLE, page="shards")
    assert [one.value for one in app.exception] == []
    text = html_of(app)
    assert {"Load of each rank, by shard", "Heaviest shards and hot partitions", "Every shard"} <= {
        *titles(app)
    }
    assert "10 of 16" in text
    assert "rank 3, the busiest" in text
    first = app.dataframe[0].value.iloc[0]
    assert (first["table"], first["rank"]) == ("table_1_part_3", 3)
    assert first["times"] > 3


def test_the_rank_of_the_link_is_chosen(open_app: Any) -> None:
    app = open_app(SAMPLE, page="shards", rank="2")
    assert set(app.dataframe[0].value["rank"]) == {2}
    app.selectbox(key="rank").select("all").run()
    assert link(app, "rank") == "all"
    assert len(app.dataframe[0].value) == 16


def test_a_report_shows_today_only(report: Any, open_app: Any) -> None:
    app = open_app(report(two_ranks()), page="shards")
    assert [one.value for one in app.exception] == []
    text = html_of(app)
    assert "which a report does not hold" in text
    assert "As proposed" not in text
    assert "proposed" not in app.dataframe[0].value.columns


def test_without_a_manifest_the_page_says_how_to_get_one(tmp_path: Path, open_app: Any) -> None:
    folder = tmp_path / "bare"
    shutil.copytree(SAMPLE, folder)
    (folder / "run.json").unlink()
    app = open_app(folder, page="shards")
    assert [one.value for one in app.exception] == []
    assert titles(app) == ["The load of each rank, by every measure"]
    assert "measure=model" in app.code[0].value


def test_a_plan_without_counts_asks_for_them(tmp_path: Path, open_app: Any) -> None:
    folder = tmp_path / "uncounted"
    shutil.copytree(SAMPLE, folder)
    document = json.loads((folder / "run.json").read_text())
    document["measured_tables"] = document["tables"] = None
    (folder / "run.json").write_text(json.dumps(document))
    app = open_app(folder, page="shards")
    assert [one.value for one in app.exception] == []
    assert "No placement is proposed: run.json holds neither counted bytes" in html_of(app)
    assert "measure=model" in app.code[0].value


def test_nothing_about_tables_asks_for_a_capture(report_of: Any, open_app: Any) -> None:
    app = open_app(report_of("late_rank"), page="shards")
    assert "no run.json names the tables" in html_of(app)


def test_hostile_table_names_are_text(report: Any, open_app: Any) -> None:
    diagnosis = two_ranks(shards=[shard(HOSTILE_NAME, 0, 9.0, 5), shard(HOSTILE_NAME, 1, 1.0, 5)])
    app = open_app(report(diagnosis), page="shards")
    assert [one.value for one in app.exception] == []
    assert "\u202e" not in app.dataframe[0].value.iloc[0]["table"]
    assert "<script" not in html_of(app)
    cost = cost_of(diagnosis, None)
    assert cost is not None
    drawings = [
        load_bars(cost, LIGHT),
        heavy_bars(diagnosis, LIGHT),
        planned_against_counted(diagnosis, LIGHT),
    ]
    for drawing in drawings:
        assert drawing is not None
        assert "<script" not in json.dumps(json.loads(drawing.to_json()), ensure_ascii=False)
        assert "\u202e" not in json.dumps(json.loads(drawing.to_json()), ensure_ascii=False)


# Charts --------------------------------------------------------------------------------------------


def stacked(drawing: Any, side: str) -> dict[int, float]:
    """Rank's place -> where its bar ends."""
    ends: dict[int, float] = {}
    for bar in (one for one in drawing.data if one.type == "bar"):
        for at, base, length, said in zip(bar.x, bar.base, bar.y, bar.hovertext, strict=True):
            if f", {side}:" in said:
                ends[at] = max(ends.get(at, 0), base + length)
    return ends


def test_bars_end_at_each_ranks_load_before_and_after() -> None:
    cost = cost_of(two_ranks(), proposal())
    assert cost is not None
    drawing = load_bars(cost, LIGHT)
    assert drawing is not None
    assert drawing.layout.yaxis.title.text == "MB"
    assert stacked(drawing, "today") == {0: 8, 1: 1}
    assert stacked(drawing, "proposed") == {0: 6, 1: 3}
    mean = drawing.data[-1]
    assert list(mean.y) == [4.5, 4.5]
    # The mean shard has 3 MB: only that of 6 MB has 1.2 times as much; one legend entry for both sides.
    heavy = [one for one in drawing.data if one.name == HEAVY_WORDS]
    assert [list(one.y) for one in heavy] == [[6], [6]]
    assert [one.showlegend for one in heavy] == [True, False]


def test_without_a_proposal_cost_is_bytes_else_ids_else_the_plan() -> None:
    counted = cost_of(two_ranks(), None)
    assert counted is not None
    assert (counted.unit, [one.amount for one in counted.pieces]) == ("bytes", [6_500, 2_500, 1_500])
    ids = [replace(one, returned_bytes_per_step=None) for one in two_ranks().shards]
    by_ids = cost_of(two_ranks(shards=ids), None)
    assert by_ids is not None
    assert (by_ids.unit, [one.amount for one in by_ids.pieces]) == ("ids", [6, 2, 1])
    planned = cost_of(two_ranks(shards=[shard("a", 0, None, 7), shard("b", 1, None, 9)]), None)
    assert planned is not None
    assert (planned.unit, [one.amount for one in planned.pieces]) == ("ns", [7, 9])
    assert cost_of(two_ranks(shards=[shard("a", 0, None, None)]), None) is None


def test_many_shards_of_a_rank_are_drawn_together() -> None:
    shards = [shard(f"t{number}", 0, 30.0 - number) for number in range(30)]
    cost = cost_of(two_ranks(shards=shards), None)
    assert cost is not None
    drawing = load_bars(cost, LIGHT)
    assert drawing is not None
    said = [text for bar in drawing.data if bar.type == "bar" for text in bar.hovertext]
    assert len(said) == 25
    assert any("6 lighter shards" in text for text in said)
    total_kb = sum(range(1, 31)) + 30 * 0.5
    assert stacked(drawing, "today")[0] == pytest.approx(total_kb)


def test_heavy_shards_are_multiples_of_the_mean_one() -> None:
    found = heaviest(two_ranks())
    # 6, 2 and 1 ids, the mean is 3; of table b the mean is 1.5.
    assert [(one.row.table, one.row.rank, one.factor) for one in found] == [
        ("a", 0, 2), ("b", 0, pytest.approx(2 / 3)), ("b", 1, pytest.approx(1 / 3))
    ]  # fmt: skip
    assert [one.of_table for one in found] == [None, pytest.approx(4 / 3), pytest.approx(2 / 3)]
    drawing = heavy_bars(two_ranks(), LIGHT)
    assert drawing is not None
    assert list(drawing.data[0].x) == [one.factor for one in found]
    assert list(drawing.data[0].marker.color) == [LIGHT.major, LIGHT.muted, LIGHT.muted]
    words = hot_words(two_ranks())
    assert words.startswith("1 of 3 shards have 1.2 times the mean shard or more")
    assert "b on rank 0 stands out most: 1.33x" in words


def test_even_shards_do_not_stand_out() -> None:
    even = two_ranks(shards=[shard("a", 0, 5.0), shard("b", 1, 5.0)])
    assert hot_words(even).startswith("None stands out")


def test_the_map_holds_each_measure_over_its_mean() -> None:
    drawing = balance_map(two_ranks(), LIGHT)
    assert drawing is not None
    (heat,) = drawing.data
    assert list(heat.x) == ["lookup<br>time", "ids"]
    # Lookups of 3 and 1 ms, mean 2; ids are known of rank 0 only.
    assert [list(row) for row in heat.z] == [[1.5, 1], [0.5, None]]
    assert [list(row) for row in heat.customdata] == [["3.00 ms", "8"], ["1.00 ms", "n/a"]]
    assert balance_map(two_ranks(rank_loads=[]), LIGHT) is None


def test_the_plan_is_held_against_the_counts() -> None:
    drawing = planned_against_counted(two_ranks(), LIGHT)
    assert drawing is not None
    dots = drawing.data[1]
    assert list(dots.x) == [1, 1, 1]
    assert list(dots.y) == pytest.approx([6.5 / 3.5, 2.5 / 3.5, 1.5 / 3.5])
    assert list(dots.marker.color) == [LIGHT.major, LIGHT.muted, LIGHT.muted]
    assert planned_against_counted(two_ranks(shards=[shard("a", 0, 6.0)]), LIGHT) is None


def test_rows_hold_the_proposed_rank() -> None:
    rows = shard_rows(two_ranks(), proposal())
    assert [(row["table"], row["rank"], row["proposed"]) for row in rows] == [
        ("a", 0, "0"), ("b", 0, "1"), ("b", 1, "1")
    ]  # fmt: skip
    assert (rows[0]["read"], rows[0]["returned"], rows[0]["times"]) == (6, 0.5, 2)


def test_the_proposal_can_be_taken_along() -> None:
    lines = placement_csv(proposal()).splitlines()
    assert lines[0] == "table,rows,dim,rank,proposed_rank,moves,cost_bytes"
    assert lines[2] == "b,100,8,0,1,yes,2000000.0"
    text = tiles(proposal())
    assert "1.78x" in text
    assert "1.33x" in text
    assert "1 of 3" in text
