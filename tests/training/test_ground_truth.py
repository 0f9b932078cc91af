"""What ``run.json`` says about an injected fault: one true value per step, or null with a reason."""

import time
from typing import Any

import pytest
import torch

from training.config import Config, FaultConfig, ModelConfig, ShardingConfig, with_settings
from training.emulation import watch_lookups
from training.faults import Fault, HotPartition, LateRank, SlowInput, SlowLink, Suffered, make_fault
from training.ground_truth import ground_truth
from training.recipes import HOT_PARTITION_4RANK, LATE_RANK_4RANK
from training.stopwatch import Stopwatch

LATE = with_settings(LATE_RANK_4RANK, ["world_size=3", "fault.rank=2"])
MS = 1_000_000


def told(config: Config, suffered: list[Suffered], placements: Any = None) -> dict[str, Any]:
    (found,) = ground_truth(config, suffered, placements or [])
    return found


def test_a_delay_costs_what_the_others_waited_for_it() -> None:
    # Delay 40. Step 0: ready 40 behind the last other one: 40. Step 1: another came 12 later than expected,
    # so 28 of the delay remain to wait for. Step 2: 55 behind, of which 15 are not the fault's. Step 3: no
    # one waits for rank 2, another comes after it.
    suffered = [
        Suffered([0.0] * 4, [10 * MS, 22 * MS, 10 * MS, 10 * MS]),
        Suffered([0.0] * 4, [8 * MS, 8 * MS, 8 * MS, 60 * MS]),
        Suffered([40.0] * 4, [50 * MS, 50 * MS, 65 * MS, 50 * MS]),
    ]
    found = told(LATE, suffered)
    assert found["measured_ms_per_step"] == [40.0, 40.0, 40.0, 40.0]
    assert found["cost_ms_per_step"] == [40.0, 28.0, 40.0, 0.0]


@pytest.mark.parametrize("change", [["ranks_per_node=1"], ["device=cuda"]])
def test_clocks_that_cannot_be_compared_give_no_cost(change: list[str]) -> None:
    suffered = [Suffered([40.0], [0])] * 3
    found = told(with_settings(LATE, change), suffered)
    assert found["cost_ms_per_step"] is None
    assert "one machine" in found["cost_not_known"]
    assert found["measured_ms_per_step"] == [40.0]


def test_the_cost_of_host_synchronisations_on_a_gpu_is_not_known() -> None:
    config = with_settings(LATE, ["device=cuda", "fault.kind=host_sync", "fault.count=5"])
    found = told(config, [Suffered([1.0], [0])] * 3)
    assert found["measured_ms_per_step"] is None
    assert found["not_measured"]


PLACED = [{"table_1_part_3": [3], "table_1_part_0": [0]}] * 4


def test_a_hot_partition_costs_its_owners_excess() -> None:
    suffered = [Suffered([ms, ms], [0, 0]) for ms in (10.0, 12.0, 11.0, 50.0)]
    found = told(HOT_PARTITION_4RANK, suffered, PLACED)
    assert (found["ranks"], found["measured_ms_per_step"]) == ([3], [38.0, 38.0])  # 50 - 12


@pytest.mark.parametrize(
    ("took_ms", "owners", "reason"),
    [(0.0, [3], "no lookup"), (5.0, [0, 1, 2, 3], "every rank owns")],
)
def test_what_was_not_measured_is_null_and_never_zero(took_ms: float, owners: list[int], reason: str) -> None:
    placed = [{"table_1_part_3": owners}] * 4
    found = told(HOT_PARTITION_4RANK, [Suffered([took_ms], [0])] * 4, placed)
    assert found["measured_ms_per_step"] is None
    assert reason in found["not_measured"]


class Lookup(torch.nn.Module):
    """Takes 2 ms."""

    def forward(self, features: Any) -> torch.Tensor:
        time.sleep(0.002)
        return torch.zeros(1)


class Features:
    def lengths(self) -> torch.Tensor:
        return torch.ones(4)

    def values(self) -> torch.Tensor:
        return torch.zeros(4)


@pytest.mark.parametrize("us_per_1k_ids", [0.0, 1_000_000.0])
def test_real_lookups_are_measured_with_the_emulated_ones(us_per_1k_ids: float) -> None:
    tables = torch.nn.Module()
    tables._lookups = [Lookup(), Lookup()]
    fault = HotPartition()
    watch_lookups(tables, us_per_1k_ids, fault.before_lookup, fault.after_lookup)
    for lookup in tables._lookups:
        lookup(Features())
    fault.end_step()
    # Two lookups of 2 ms, and 4 ids of 1 ms each in either.
    expected = 2 * (2 + (4 if us_per_1k_ids else 0))
    (took,) = fault.suffered().took_ms
    assert expected <= took < expected + 50


def test_a_pipeline_that_loads_ahead_has_one_value_per_step() -> None:
    # Three loads in the first of four steps and none in the last, as TrainPipelineSparseDist does.
    fault = SlowInput(FaultConfig(kind="slow_input", delay_ms=2.0))
    for loads in (3, 1, 1, 0):
        for _ in range(loads):
            fault.while_loading()
        fault.end_step()
    took = fault.suffered().took_ms
    assert len(took) == 4
    assert took[0] >= 3 * 2
    assert took[3] == 0


def test_a_link_is_counted_from_the_first_load_to_the_end_of_each_step(tmp_path: Any) -> None:
    counters = tmp_path / "dev"

    def sent(count: int) -> None:
        counters.write_text(f"    lo: 0 0 0 0 0 0 0 0 {count} 0 0 0 0 0 0 0\n")

    fault = SlowLink(FaultConfig(kind="slow_link", link_mbit=8), counters)  # 1,000 bytes/ms
    sent(700)  # before training
    fault.while_loading()
    for count in (2700, 7700):
        sent(count)
        fault.while_loading()
        fault.end_step()
    assert fault.suffered().took_ms == [2.0, 5.0]


class Event:
    """A stream's clock: 30 ms between any two records."""

    now_ms = 0.0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        Event.now_ms += 30
        self.at_ms = Event.now_ms

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: "Event") -> float:
        return end.at_ms - self.at_ms


def test_a_gpu_is_timed_by_its_stream_and_not_by_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    watch = Stopwatch()
    with watch.timing(torch.device("cuda")):
        pass  # queued at once
    watch.end_step()
    assert watch.milliseconds() == [30.0]


def test_every_rank_says_when_it_was_ready() -> None:
    config = Config(
        name="a",
        world_size=2,
        model=ModelConfig(),
        sharding=ShardingConfig(),
        fault=FaultConfig(kind="late_rank", rank=1, delay_ms=5.0),
    )
    ranks = [make_fault(config, rank) for rank in (0, 1)]
    assert [type(one) for one in ranks] == [Fault, LateRank]
    for _ in range(2):
        for one in ranks:
            one.before_forward(torch.zeros(1, 1))
            one.end_step()
    found = told(config, [one.suffered() for one in ranks])
    # In one process rank 1's wait begins when rank 0 is ready: all of it is waited for.
    assert all(5 <= cost < 30 for cost in found["measured_ms_per_step"])
    assert found["cost_ms_per_step"] == pytest.approx(found["measured_ms_per_step"], abs=0.5)
