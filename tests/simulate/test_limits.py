"""No specification gives a trace that cannot be: every number is bounded, and the run as a whole."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.simulate.specs import TWO_NODES, merged
from traceinsight.base.errors import UsageError
from traceinsight.simulate import Spec, decode_spec, simulate
from traceinsight.simulate.load import inner_type

_RANKS = {"rank"}
"""Bounded by the ranks of the job instead."""


def _numbers(section: type[msgspec.Struct] = Spec, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """(path, bounds) of every number of a specification."""
    hints = typing.get_type_hints(section, include_extras=True)
    for name, annotated in hints.items():
        inner = inner_type(annotated)
        if inner in {int, float}:
            yield (*path, name), _bounds(annotated)
        elif typing.get_origin(inner) is dict and name == "tables":
            yield from _numbers(typing.get_args(inner)[1], (*path, name, "big"))
        elif typing.get_origin(inner) is tuple and name == "stragglers":
            yield from _numbers(typing.get_args(inner)[0], (*path, name))
        elif isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from _numbers(inner, (*path, name))


def _bounds(annotated: Any) -> tuple[float | None, float | None]:
    while type(None) in typing.get_args(annotated):
        annotated = typing.get_args(annotated)[0]
    (meta,) = annotated.__metadata__
    return (meta.ge if meta.ge is not None else meta.gt), meta.le


NUMBERS = dict(_numbers())


def _with(path: tuple[str, ...], value: float) -> Spec:
    change: dict[str, Any] = {path[-1]: value}
    if path[0] == "stragglers":
        change = {"stragglers": [{"rank": 0} | change]}
    elif path[0] == "two_d":
        change = {"two_d": {"group_size": 4} | change}
    else:
        for parent in reversed(path[:-1]):
            change = {parent: change}
    return decode_spec(merged(TWO_NODES, change))


def test_every_number_has_a_least_and_a_most() -> None:
    assert len(NUMBERS) > 50
    open_ended = [path for path, bounds in NUMBERS.items() if None in bounds and path[-1] not in _RANKS]
    assert open_ended == []


@pytest.mark.parametrize("path", NUMBERS, ids=".".join)
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 1e300, 2**63, -(2**63), 2**200])
def test_no_number_may_be_endless(path: tuple[str, ...], value: float) -> None:
    with pytest.raises(UsageError, match=path[-1]):
        _with(path, value)


_SLOW = {"count", "kernels", "small_kernels", "steps", "parameters", "ddp_bucket_mb"}
"""How many there are of something: the most that is allowed takes seconds to minutes."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("path", [path for path in NUMBERS if path[-1] not in _SLOW], ids=".".join)
@pytest.mark.parametrize("end", [0, 1])
def test_the_ends_of_a_range_are_simulated_or_refused(path: tuple[str, ...], end: int) -> None:
    value = NUMBERS[path][end]
    if value is None:
        return
    try:
        run = simulate(_with(path, value))
    except UsageError as error:
        assert "Allowed" in str(error) or "divisor" in str(error)
        return
    assert all((row.dur_ns >= 0).all() and (row.start_ns >= 0).all() for row in run.rows)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"batch_per_rank": 10_000_000, "dense": {"forward_gflop": 100.0}}, "dense.forward_gflop"),
        ({"tables": {"big": {"mean_ids": 1e6, "dim": 65_536}}, "batch_per_rank": 10_000}, "mean_ids"),
        ({"cluster": {"hbm_gbps": 0.001}, "dense": {"parameters": 10**9}}, "hbm_gbps"),
        ({"cluster": {"node_gbps": 0.001}, "batch_per_rank": 100_000}, "node_gbps"),
        ({"host": {"launch_us": 1e6}, "dense": {"small_kernels": 10_000}}, "launch_us"),
        ({"stragglers": [{"rank": 0, "host_ms": 600_000}] * 6}, "stragglers"),
    ],
)
def test_a_step_of_an_hour_is_refused_by_what_makes_it_long(change: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        simulate(decode_spec(merged(TWO_NODES, change)))
    assert "Allowed" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"tables": {"big": {"count": 100_000, "partitions_per_rank": 2.0}}}, "tables"),
        (
            {
                "cluster": {"nodes": 4096, "gpus_per_node": 64},
                "tables": {"big": {"partitions_per_rank": 0.1}},
            },
            "two_d.group_size",
        ),
        ({"capture": {"steps": 1000}, "dense": {"small_kernels": 100_000}}, "capture.steps"),
        ({"dense": {"parameters": 10**12}, "comms": {"ddp_bucket_mb": 1.0}}, "dense.parameters"),
    ],
)
def test_what_would_not_fit_into_memory_is_refused_before_it_is_tried(
    change: dict[str, Any], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        decode_spec(merged(TWO_NODES, change))


def test_steps_before_number_zero_are_simulated() -> None:
    run = simulate(decode_spec(merged(TWO_NODES, {"capture": {"first_step": 0, "warmup": 3}})))
    assert [one.step for one in run.truth.steps] == [0, 1, 2, 3, 4]
