"""The order of changes, on a bench whose answers are known by arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from traceinsight.advice.roadmap import alone, effort_of, plan
from traceinsight.diagnosis import Finding
from traceinsight.replay.edits.edit import Edit, NotApplicableError
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.predict import Bench, Prediction


@dataclass(frozen=True)
class KnownBench:
    """Host and device side by side: a step is as long as the longer one, and edits shorten one of them."""

    host_ms: float
    device_ms: float
    freed: dict[str, tuple[float, float]]  # edit -> what it frees of host and device, ms
    impossible: frozenset[str] = frozenset()

    def predict(self, edits: Sequence[Edit]) -> Prediction:
        if any(edit.text in self.impossible for edit in edits):
            raise NotApplicableError("nothing to edit")
        host = self.host_ms - sum(self.freed[edit.text][0] for edit in edits)
        device = self.device_ms - sum(self.freed[edit.text][1] for edit in edits)
        step = max(host, device) * 1e6
        today = max(self.host_ms, self.device_ms) * 1e6
        return Prediction(tuple(edit.text for edit in edits), today, step, step, step, 1.0, 1.0)


def finding(rule: str, *edits: str) -> Finding:
    return Finding(
        rule=rule, severity="major", confidence="high", title="", ranks=[], evidence=[], gain=None,
        action="", quality_risk="", edits=list(edits),
    )  # fmt: skip


def planned(bench: KnownBench, *findings: Finding) -> list[tuple[str, str, int]]:
    """(rule, edit, step after it in ms) of each change."""
    changes = plan(cast(Bench, bench), findings)
    return [(one.rule, one.edit.text, round(one.after.expected_ns / 1e6)) for one in changes]


def test_each_change_is_predicted_on_what_the_one_before_left() -> None:
    # 100 ms of device beside 60 ms of host. Either edit alone frees 50 or 30 ms of the device; both together
    # would free 80, but the host's 60 ms hold the step from the first on.
    bench = KnownBench(60, 100, {"qcomms=fp8": (0, 50), "no-straggler=2": (0, 30)})
    found = planned(bench, finding("straggler", "no-straggler=2"), finding("bytes", "qcomms=fp8"))
    assert found == [("bytes", "qcomms=fp8", 60)]


def test_what_was_hidden_is_named_once_it_shows() -> None:
    # Nothing on the host helps before the device is quicker than it.
    bench = KnownBench(60, 100, {"qcomms=fp8": (0, 60), "no-input-wait": (25, 0)})
    found = planned(bench, finding("input", "no-input-wait"), finding("bytes", "qcomms=fp8"))
    assert found == [("bytes", "qcomms=fp8", 60), ("input", "no-input-wait", 40)]


def test_a_setting_comes_before_a_model_change_that_gains_more() -> None:
    bench = KnownBench(0, 100, {"narrow=2": (0, 40), "qcomms=fp8": (0, 20), "balance": (0, 30)})
    found = planned(
        bench, finding("wide", "narrow=2"), finding("bytes", "qcomms=fp8"), finding("shards", "balance")
    )
    assert [edit for _, edit, _ in found] == ["qcomms=fp8", "balance", "narrow=2"]
    assert [step for _, _, step in found] == [80, 50, 10]


def test_a_setting_that_gains_a_fraction_of_another_change_does_not_come_before_it() -> None:
    # 100 ms of device. A setting frees 4 ms, a placement 24: less than a fifth of it, and then 4 of 76.
    bench = KnownBench(0, 100, {"qcomms=fp8": (0, 4), "balance": (0, 24)})
    both = finding("bytes", "qcomms=fp8"), finding("shards", "balance")
    assert planned(bench, *both) == [("shards", "balance", 76), ("bytes", "qcomms=fp8", 72)]
    # At exactly a fifth it does.
    bench = KnownBench(0, 100, {"qcomms=fp8": (0, 5), "balance": (0, 25)})
    assert planned(bench, *both) == [("bytes", "qcomms=fp8", 95), ("shards", "balance", 70)]


def test_alternatives_of_one_finding_are_not_both_applied() -> None:
    bench = KnownBench(0, 100, {"qcomms=fp16": (0, 20), "qcomms=fp8": (0, 30)})
    assert planned(bench, finding("bytes", "qcomms=fp16", "qcomms=fp8")) == [("bytes", "qcomms=fp8", 70)]


def test_the_roadmap_ends_where_nothing_gains_two_percent() -> None:
    at = KnownBench(0, 100, {"fuse": (0, 2)})
    below = KnownBench(0, 100, {"fuse": (0, 1.9)})
    slower = KnownBench(0, 100, {"fuse": (0, -20)})
    assert planned(at, finding("host", "fuse")) == [("host", "fuse", 98)]
    assert planned(below, finding("host", "fuse")) == []
    assert planned(slower, finding("host", "fuse")) == []


def test_an_edit_that_means_nothing_here_is_passed_over() -> None:
    bench = KnownBench(0, 100, {"fuse": (0, 10), "balance": (0, 0)}, impossible=frozenset({"balance"}))
    assert planned(bench, finding("shards", "balance"), finding("host", "fuse")) == [("host", "fuse", 90)]


def test_a_gain_alone_is_that_of_the_best_alternative_even_if_it_costs_time() -> None:
    bench = KnownBench(0, 100, {"qcomms=fp16": (0, -5), "qcomms=fp8": (0, -10), "fuse": (0, 0.5)})
    best = alone(cast(Bench, bench), [finding("bytes", "qcomms=fp8", "qcomms=fp16"), finding("host", "fuse")])
    assert {rule: change.edit.text for rule, change in best.items()} == {
        "bytes": "qcomms=fp16",
        "host": "fuse",
    }
    assert best["bytes"].gain_share < 0


def test_efforts_of_edits() -> None:
    efforts = {text: effort_of(parse_edit(text)) for text in ("network=efa_p5", "balance", "batch=2")}
    assert efforts == {"network=efa_p5": "setting", "balance": "placement", "batch=2": "model"}
