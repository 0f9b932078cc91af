"""A healthy job gets no finding, whatever noise and clocks it has."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.reading import assert_useful
from tests.builders import MS, US, JobBuilder

HEALTHY = {
    "plain": JobBuilder(steps=6),
    "eight ranks": JobBuilder(world_size=8, steps=5),
    "one rank": JobBuilder(world_size=1, steps=6, collectives=()),
    "clocks apart": JobBuilder(steps=6, clock_ahead_ns={1: 5 * MS, 3: -40 * MS}),
    "no arguments": JobBuilder(steps=6, arguments=False),
    **{f"jitter, seed {seed}": JobBuilder(steps=6, jitter_ns=30 * US, seed=seed) for seed in range(5)},
}


@pytest.mark.parametrize("knobs", HEALTHY.values(), ids=HEALTHY)
def test_no_bottleneck_is_found(diagnose_job: Callable[..., Any], knobs: JobBuilder) -> None:
    # 12.0 of 12.26 ms are compute; 230 us of communication are exposed (1.9 %), jitter adds waits of
    # at most 60 us before each of three all-to-alls (1.5 %).
    diagnosis = diagnose_job(knobs.build())
    assert diagnosis.findings == []
    assert diagnosis.stragglers == []
    assert diagnosis.roadmap == []
    assert "no bottleneck found above" in diagnosis.verdict.lower()
    assert_useful(diagnosis)


def test_rules_that_looked_and_found_nothing_say_so(diagnose_job: Callable[..., Any]) -> None:
    diagnosis = diagnose_job(JobBuilder(steps=6).build())
    assert {"exposed-all-to-all", "straggler", "input-bound", "host-bound"} <= {
        c.rule for c in diagnosis.clean
    }
    assert all(c.summary for c in diagnosis.clean)


def test_a_sick_job_does_not_get_the_healthy_verdict(diagnose_job: Callable[..., Any]) -> None:
    diagnosis = diagnose_job(JobBuilder(input_delay_ns=dict.fromkeys(range(4), 20 * MS)).build())
    assert "no bottleneck found above" not in diagnosis.verdict.lower()
    assert any(c.isdigit() for c in diagnosis.verdict)
