"""Disturbing recordings as profilers and machines do: clocks that differ, lost kernels, ragged ends.

All of it happens in memory after reading, so one simulated or public run serves many cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceinsight.trace.collectives import communication_kernels
from traceinsight.trace.recording import GPU_WORK, EventTable, Recording

MS, US = 1_000_000, 1_000
Recordings = Sequence[Recording]


def skews_ns(recordings: Recordings, seed: int, *, per_rank: bool = False) -> dict[int, int]:
    """Rank -> by how much its clock runs ahead: up to 10 ms either way, one draw per host or per rank."""
    generator = np.random.default_rng(seed)
    found: dict[str, int] = {}
    for one in sorted(recordings, key=lambda one: one.rank or 0):
        key = f"{one.rank}" if per_rank or one.host is None else one.host
        if key not in found:
            found[key] = int(generator.integers(-10 * MS, 10 * MS + 1))
    return {
        one.rank: found[f"{one.rank}" if per_rank or one.host is None else one.host]
        for one in recordings
        if one.rank is not None
    }


def skewed(recordings: Recordings, ahead_ns: Mapping[int, int]) -> list[Recording]:
    """The same recordings by clocks that run ahead."""
    return [
        _with_events(one, start_ns=one.events.start_ns + ahead_ns.get(one.rank or 0, 0)) for one in recordings
    ]


def ragged(recordings: Recordings, seed: int, spread_ns: int = 30 * US) -> list[Recording]:
    """Communication kernels end up to ``spread_ns`` early, each by its own draw: real ends differ, too.

    Early, so that what follows a kernel still starts after it.
    """
    found = []
    for one in recordings:
        generator = np.random.default_rng((seed, one.rank or 0))
        chosen = communication_kernels(one)
        dur = one.events.dur_ns.copy()
        dur[chosen] = np.maximum(dur[chosen] - generator.integers(0, spread_ns + 1, len(chosen)), 0)
        found.append(_with_events(one, dur_ns=dur))
    return found


def without_ranks(recordings: Recordings, *absent: int) -> list[Recording]:
    """The files of these ranks are missing."""
    return [one for one in recordings if one.rank not in absent]


def losing(recordings: Recordings, seed: int, shares: Mapping[int, float]) -> list[Recording]:
    """Each rank's profiler loses this share of its device events (kernels, copies), drawn at random."""

    def lost(one: Recording) -> NDArray[np.bool_]:
        generator = np.random.default_rng((seed, one.rank or 0))
        device = np.isin(one.events.kind, GPU_WORK)
        return device & (generator.random(len(one.events)) < shares.get(one.rank or 0, 0.0))

    return [_without(one, lost(one)) if one.rank in shares else one for one in recordings]


def without_collective(recordings: Recordings, rank: int, which: int) -> list[Recording]:
    """One rank lacks its ``which``-th communication kernel."""

    return [
        without_events(one, [int(communication_kernels(one)[which])]) if one.rank == rank else one
        for one in recordings
    ]


def without_events(recording: Recording, lost: Sequence[int]) -> Recording:
    """A recording that lacks these events."""
    gone = np.zeros(len(recording.events), dtype=np.bool_)
    gone[list(lost)] = True
    return _without(recording, gone)


def without_arguments(recordings: Recordings) -> list[Recording]:
    """Collectives carry no arguments, as before PyTorch 2.3."""
    return [replace(one, comm_args={}, _cache={}) for one in recordings]


def _with_events(one: Recording, **columns: NDArray[np.int64]) -> Recording:
    return replace(one, events=replace(one.events, **columns), _cache={})


def _without(one: Recording, gone: NDArray[np.bool_]) -> Recording:
    kept = np.flatnonzero(~gone)
    events = one.events
    table = EventTable(*(getattr(events, name)[kept] for name in EventTable.__dataclass_fields__))
    place = {int(old): new for new, old in enumerate(kept)}
    args = {place[at]: value for at, value in one.comm_args.items() if at in place}
    return replace(one, events=table, comm_args=args, _cache={})
