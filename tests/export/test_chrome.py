"""The exported trace: nothing lost, clocks aligned, waits and findings where they belong."""

import gzip
import io
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.builders import MS, US, JobBuilder, Late
from traceinsight import api
from traceinsight.cli import main
from traceinsight.export import write_chrome_trace

AHEAD = 5 * MS
JOB = JobBuilder(world_size=3, late=(Late(rank=1, ns=2 * MS),), clock_ahead_ns={2: AHEAD}).build()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> api.Loaded:
    return api.load(JOB.write(tmp_path_factory.mktemp("job")), workers=1)


@pytest.fixture(scope="module")
def events(loaded: api.Loaded) -> list[dict[str, Any]]:
    sink = io.StringIO()
    write_chrome_trace(loaded.trace_set, api.diagnose(loaded), sink)
    assert sink.getvalue().isascii()
    document = json.loads(sink.getvalue())
    assert document["otherData"]["verdict"]
    found: list[dict[str, Any]] = document["traceEvents"]
    return found


def names(events: list[dict[str, Any]], what: str) -> dict[tuple[int, int], str]:
    key = what.partition("_")[2]
    return {(e["pid"], e["tid"]): e["args"][key] for e in events if e["ph"] == "M" and e["name"] == what}


def on_track(events: list[dict[str, Any]], process: int, title: str) -> list[dict[str, Any]]:
    tracks = {place for place, name in names(events, "thread_name").items() if name == title}
    return [e for e in events if e["ph"] == "X" and e["pid"] == process and (process, e["tid"]) in tracks]


def test_every_event_of_every_rank_is_there(loaded: api.Loaded, events: list[dict[str, Any]]) -> None:
    for rank in loaded.trace_set.ranks:
        written = [
            e for e in events if e["ph"] == "X" and e["pid"] == rank.rank and e["cat"] != "traceinsight"
        ]
        assert len(written) == len(rank.recording.events)
    assert [name for (_, _), name in sorted(names(events, "process_name").items())] == [
        "rank 0", "rank 1", "rank 2", "traceinsight: findings",
    ]  # fmt: skip


def test_times_begin_at_zero_and_keep_every_nanosecond(
    loaded: api.Loaded, events: list[dict[str, Any]]
) -> None:
    slices = [e for e in events if e["ph"] == "X"]
    assert min(e["ts"] for e in slices) == 0
    table = loaded.trace_set.ranks[0].recording.events
    written = [e for e in slices if e["pid"] == 0 and e["cat"] != "traceinsight"]
    assert [round(e["dur"] * 1000) for e in written] == table.dur_ns.tolist()


def test_clocks_are_aligned(events: list[dict[str, Any]]) -> None:
    """Rank 2 wrote stamps 5 ms ahead; members of one collective end together all the same."""
    ends: dict[int, list[float]] = defaultdict(list)
    for rank in range(3):
        kernels = [
            e
            for e in events
            if e["ph"] == "X" and e["pid"] == rank and e.get("args", {}).get("operation") == "all_reduce"
            and e["cat"] == "kernel"
        ]  # fmt: skip
        for position, kernel in enumerate(sorted(kernels, key=lambda e: e["ts"])):
            ends[position].append(kernel["ts"] + kernel["dur"])
    assert len(ends) == 4  # one per step
    for together in ends.values():
        assert len(together) == 3
        assert max(together) - min(together) < 10  # us; the skew is 5,000


def test_waits_are_as_long_as_they_were(events: list[dict[str, Any]]) -> None:
    waits = on_track(events, 0, "waits for late ranks")
    truth = sorted(one.wait(0) for one in JOB.collectives if one.wait(0) > 0)
    assert sorted(round(e["dur"] * 1000) for e in waits) == pytest.approx(truth, abs=10 * US)
    long = [e for e in waits if e["dur"] > 1000]
    assert long
    assert {e["name"] for e in long} == {"wait for rank 1: all_to_all"}


def test_the_critical_path_is_a_track_that_leads_through_the_late_rank(events: list[dict[str, Any]]) -> None:
    """Its pieces follow each other over all ranks; rank 1, 2 ms late to every collective, holds most."""
    pieces = [(rank, e) for rank in range(3) for e in on_track(events, rank, "critical path")]
    pieces.sort(key=lambda piece: piece[1]["ts"])
    for (_, one), (_, following) in pairwise(pieces):
        assert one["ts"] + one["dur"] == pytest.approx(following["ts"], abs=0.002)
    total = sum(e["dur"] for _, e in pieces)
    assert sum(e["dur"] for rank, e in pieces if rank == 1) > 0.9 * total
    assert {e["args"]["kind"] for _, e in pieces} >= {"work", "transfer"}


def test_without_a_replay_there_is_no_critical_path(tmp_path: Path) -> None:
    loaded = api.load(
        JobBuilder(world_size=2, profiler_step=False).build().write(tmp_path / "job"), workers=1
    )
    sink = io.StringIO()
    write_chrome_trace(loaded.trace_set, api.diagnose(loaded), sink)
    assert "critical path" not in sink.getvalue()


def test_findings_stand_on_tracks_of_their_own(loaded: api.Loaded, events: list[dict[str, Any]]) -> None:
    diagnosis = api.diagnose(loaded)
    finding = next(one for one in diagnosis.findings if one.rule == "straggler")
    marks = on_track(events, 3, f"straggler ({finding.severity})")
    assert len(marks) == len(diagnosis.run.steps)
    assert {e["name"] for e in marks} == {finding.title}
    assert marks[0]["args"]["do"] == finding.action
    assert "late" in names(events, "process_labels")[1, 0]


def test_slices_of_our_tracks_do_not_overlap(events: list[dict[str, Any]]) -> None:
    by_track: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e["cat"] == "traceinsight":
            by_track[e["pid"], e["tid"]].append(e)
    assert by_track
    for marks in by_track.values():
        marks.sort(key=lambda e: e["ts"])
        for one, following in pairwise(marks):
            assert one["ts"] + one["dur"] <= following["ts"] + 0.001


def test_arrows_lead_from_launches_to_kernels(events: list[dict[str, Any]]) -> None:
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    finishes = {e["id"]: e for e in events if e["ph"] == "f"}
    assert begins
    assert begins.keys() == finishes.keys()
    assert all(begins[one]["ts"] <= finishes[one]["ts"] for one in begins)
    assert all(begins[one]["tid"] != finishes[one]["tid"] for one in begins)


def test_the_command_writes_a_compressed_file_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = JOB.write(tmp_path / "job")
    target = tmp_path / "all.json.gz"
    assert main(["export", str(folder), "-o", str(target), "--workers", "1"]) == 0
    first = target.read_bytes()
    assert json.loads(gzip.decompress(first))["traceEvents"]
    assert main(["export", str(folder), "-o", str(target)]) == 2  # it exists
    assert main(["export", str(folder), "-o", str(target), "--force", "--workers", "1", "-q"]) == 0
    assert target.read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.json.gz", "job"]
    capsys.readouterr()


def test_the_command_wants_an_ending_that_says_what_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(tmp_path), "-o", str(tmp_path / "all.json")]) == 2
    assert ".json.gz" in capsys.readouterr().err
