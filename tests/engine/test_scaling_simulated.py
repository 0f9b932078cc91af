"""Scaling against simulated truth: every stage of the published ladder, through files and the analysis."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from traceinsight import api
from traceinsight.engine.scaling import MeasuredRun, measure, scale
from traceinsight.simulate import load_spec, simulate, write_run
from traceinsight.simulate.ladder import PUBLISHED

WITHIN = 0.01
STAGES = sorted({stage for stage, _ in PUBLISHED})
BASE = "ladder_1node"

Measured = Callable[[str], tuple[MeasuredRun, float]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A preset simulated, written, analysed: what the analysis says, and the true examples/s."""
    known: dict[str, tuple[MeasuredRun, float]] = {}

    def of(preset: str) -> tuple[MeasuredRun, float]:
        if preset not in known:
            folder = tmp_path_factory.mktemp(preset) / "run"
            write_run(simulate(load_spec(preset)), folder)
            truth = json.loads(Path(folder / "truth.json").read_text(encoding="utf-8"))
            loaded = api.load(folder, workers=1)
            run = measure(preset, api.diagnose(loaded), loaded.trace_set.manifest)
            known[preset] = run, truth["throughput"]["examples_per_s"]
        return known[preset]

    return of


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_ratios_and_rates_of_every_stage_are_those_of_the_truth(stage: str, measured: Measured) -> None:
    presets = [f"ladder_{stage}_{nodes}node" for name, nodes in PUBLISHED if name == stage]
    runs = [measured(preset) for preset in (BASE, *presets)]
    result = scale([run for run, _ in runs], version="test")
    base_rate = runs[0][1]
    for point, (_, rate) in zip(result.points, runs, strict=True):
        assert point.throughput_ratio == pytest.approx(rate / base_rate, rel=WITHIN)
        assert point.examples_per_s == pytest.approx(rate, rel=WITHIN)
        assert point.nodes == point.world_size // 8
        assert point.lost is not None
        assert point.lost.total_ns() == point.lost_ns
    assert result.no_forecast is None
    assert not [note for note in result.notes if note.code not in {"settings-differ"}]


@pytest.mark.slow
def test_the_loss_goes_where_the_stage_puts_it(measured: Measured) -> None:
    def worst(stage: str) -> str:
        run, base = measured(f"ladder_{stage}_2node")[0], measured(BASE)[0]
        lost = scale([base, run], version="test").points[1].lost
        assert lost is not None
        return max(lost.__struct_fields__, key=lambda name: getattr(lost, name))

    assert worst("tcp") == "transfer_ns"  # five times slower by its network
    assert worst("efa") == "transfer_ns"
    # The exchange stays inside a node; only the replica sync crosses.
    assert worst("2d_alltoall_intra") == "replica_sync_ns"
    run, base = measured("ladder_2d_alltoall_intra_2node")[0], measured(BASE)[0]
    lost = scale([base, run], version="test").points[1].lost
    assert lost is not None
    assert lost.unsplit_ns == 0  # all ranks are there; only work from before the capture cannot be matched
