"""Waits across the streams of one device: a trace says that work waits for a stream, but not for which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceinsight.base.kernel_families import COMMUNICATION, family_of
from traceinsight.replay.graph import Bool
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, Int64

JOINT_NS = 20_000
"""Work that starts within this time of another stream's end, long after its launch, waited for it."""

BACK_TO_BACK_NS = 5_000
"""From the end of a kernel to the start of the next one on a stream that has enough to do: 1 to 3 us."""

AHEAD = ("input", "sparse_data_dist")
"""Phases that work for a later batch, beside the forward and backward passes of this one."""

LONG_AGO = np.iinfo(np.int64).min // 2


@dataclass(frozen=True, slots=True)
class Queued:
    """Device work in order of start; columns of shape (n,), ns on the rank's own clock.

    ``launch_ns`` is MISSING where the launch is not known. ``free_ns`` is when the work before it on its
    stream ended. ``announced`` counts the calls between its launch and the launch before that let a stream
    wait. ``place`` is equal for what one place of the program launches in each step. ``ahead``: launched to
    fetch or distribute a batch. ``communicates``: a collective. ``guessed``: lost and given back, so that its
    times tell nothing.
    """

    lane: Int64
    launch_ns: Int64
    begin_ns: Int64
    end_ns: Int64
    free_ns: Int64
    announced: Int64
    place: Int64
    ahead: Bool
    communicates: Bool
    guessed: Bool


def queued(trace: RankTrace, gpu: Int64, launches: Int64, event_waits: Int64) -> Queued:
    """The device work ``gpu`` with the waits that its launches announce.

    Args:
        trace: The rank.
        gpu: Its GPU events in order of start, shape (n,).
        launches: The launch calls.
        event_waits: The calls that let a stream wait for an event.

    """
    events = trace.recording.events
    launch = trace.launch[gpu]
    lane, end_ns = events.lane[gpu].astype(np.int64), events.end_ns[gpu]
    return Queued(
        lane,
        np.where(launch == MISSING, MISSING, events.start_ns[launch]),
        events.start_ns[gpu],
        end_ns,
        _stream_free_ns(lane, end_ns),
        _announced(trace, launch, launches, event_waits),
        _places(trace, gpu),
        _ahead(trace, launch),
        np.isin(gpu, trace.recording.named(gpu, lambda name: family_of(name) == COMMUNICATION)),
        np.isin(gpu, trace.guessed),
    )


def stream_waits(work: Queued, latency_ns: float) -> tuple[Int64, Int64]:
    """(source, target): positions in ``work``; each target starts after the end of its source.

    Args:
        work: The device work of one rank.
        latency_ns: From a launch to the start on an idle stream.

    """
    pairs = [*_awaited(work, latency_ns), _joint(work)]
    return np.concatenate([one for one, _ in pairs]), np.concatenate([other for _, other in pairs])


def _awaited(work: Queued, latency_ns: float) -> Iterator[tuple[Int64, Int64]]:
    """What announced waits are for.

    An event is recorded at one place of the program, so the same launch of each step waits for the work the
    same number of launches back on the same stream. Work that was still running when it started in one step
    is therefore not what it waits for in any. Of the streams that remain it waits for those whose work ended
    right before it started where nothing else held it up, and for no more of them than there are announced
    waits. Where no stream ever held it up, for all that it may have to do with: what fetches or distributes
    a batch has nothing to do with the compute beside it.
    """
    waiting = np.flatnonzero((work.announced > 0) & (work.launch_ns != MISSING))
    if not len(waiting):
        return
    ready_ns = np.maximum(work.launch_ns[waiting] + latency_ns, work.free_ns[waiting])
    held = (work.begin_ns[waiting] - ready_ns > BACK_TO_BACK_NS) & ~work.guessed[waiting]
    _, place = np.unique(work.place[waiting], return_inverse=True)
    streams = [
        np.flatnonzero((work.lane == lane) & (work.launch_ns != MISSING)) for lane in np.unique(work.lane)
    ]
    sources = np.column_stack([_sources(work, stream, waiting, place) for stream in streams])
    likely = np.column_stack(
        [_sources(work, stream[work.ahead[stream]], waiting, place) for stream in streams]
    )
    likely = np.where(work.ahead[waiting, np.newaxis], likely, sources)
    end_ns, begin_ns = work.end_ns[sources], work.begin_ns[waiting, np.newaxis]
    bound = (sources != MISSING) & held[:, np.newaxis]
    bound &= (end_ns > ready_ns[:, np.newaxis]) & (begin_ns - end_ns <= JOINT_NS)
    for mine in _groups(place):
        streams_held = _explaining(bound[mine], int(work.announced[waiting[mine]].max()))
        found = sources[mine][:, streams_held] if streams_held else likely[mine]
        for source in found.T:
            yield source[source != MISSING], waiting[mine[source != MISSING]]


def _sources(work: Queued, stream: Int64, waiting: Int64, place: Int64) -> Int64:
    """What each of ``waiting`` may wait for among the work of one stream, MISSING where for nothing.

    A collective waits for the stream that its caller works on, which is never one of collectives only.
    """
    if not len(stream):
        return np.full(len(waiting), MISSING, dtype=np.int64)
    launched = np.searchsorted(np.maximum.accumulate(work.launch_ns[stream]), work.launch_ns[waiting]) - 1
    ended = np.searchsorted(work.end_ns[stream], work.begin_ns[waiting], side="right") - 1
    after = np.minimum(ended + 1, len(stream) - 1)  # still at work, where it was launched before
    tells = ~work.guessed[waiting] & ~work.guessed[stream[after]]
    back = np.zeros(int(place.max()) + 1, dtype=np.int64)
    np.maximum.at(back, place[tells], (launched - ended)[tells])
    position = launched - back[place]
    found = (position >= 0) & (work.lane[waiting] != work.lane[stream[0]])
    found &= ~(work.communicates[waiting] & work.communicates[stream].all())
    return np.where(found, stream[np.maximum(position, 0)], MISSING)


def _groups(place: Int64) -> list[Int64]:
    order = np.argsort(place, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(place[order])) + 1)


def _explaining(bound: Bool, most: int) -> list[int]:
    """The fewest streams that explain all waits which some stream explains, at most so many; greedily."""
    chosen: list[int] = []
    left = bound.copy()
    while left.any() and len(chosen) < most:
        chosen.append(int(left.sum(axis=0).argmax()))
        left[left[:, chosen[-1]]] = False
    return chosen


def _joint(work: Queued) -> tuple[Int64, Int64]:
    """Unannounced: work that starts at another stream's end, long after its launch and its own stream."""
    late = (
        (work.announced == 0)
        & (work.launch_ns != MISSING)
        & (work.begin_ns - work.launch_ns > 2 * JOINT_NS)
        & (work.begin_ns - work.free_ns > BACK_TO_BACK_NS)
    )
    sources, targets = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for lane in np.unique(work.lane).tolist():
        stream, waiting = np.flatnonzero(work.lane == lane), np.flatnonzero(late & (work.lane != lane))
        position = np.searchsorted(work.end_ns[stream], work.begin_ns[waiting], side="right") - 1
        waiting, source = waiting[position >= 0], stream[position[position >= 0]]
        keep = (
            (work.launch_ns[source] != MISSING)
            & (work.launch_ns[source] < work.launch_ns[waiting])
            & (work.begin_ns[waiting] - work.end_ns[source] <= JOINT_NS)
        )
        sources.append(source[keep])
        targets.append(waiting[keep])
    return np.concatenate(sources), np.concatenate(targets)


def _stream_free_ns(lanes: Int64, end_ns: Int64) -> Int64:
    """When the work before each one on its stream ended, long ago for the first; shape (n,)."""
    free_ns = np.full(len(lanes), LONG_AGO, dtype=np.int64)
    for lane in np.unique(lanes).tolist():
        on_stream = np.flatnonzero(lanes == lane)
        free_ns[on_stream[1:]] = end_ns[on_stream[:-1]]
    return free_ns


def _announced(trace: RankTrace, launch: Int64, launches: Int64, event_waits: Int64) -> Int64:
    """How many cudaStreamWaitEvent calls stand between each work's launch and the launch before it."""
    events = trace.recording.events
    announced = np.zeros(len(launch), dtype=np.int64)
    if not len(event_waits) or not len(launches):
        return announced
    for lane in np.unique(events.lane[launches]).tolist():
        own = launches[events.lane[launches] == lane]
        waits = events.start_ns[event_waits[events.lane[event_waits] == lane]]
        count = np.searchsorted(waits, events.start_ns[own], side="right")
        fresh = np.diff(count, prepend=0)
        position = np.minimum(np.searchsorted(own, launch), len(own) - 1)
        announced += np.where(own[position] == launch, fresh[position], 0)
    return announced


def _ahead(trace: RankTrace, launch: Int64) -> Bool:
    """Whether work was launched to fetch or distribute a batch: this step's compute has no part in that."""
    events = trace.recording.events
    phases = trace.annotations.phases_at(events.lane[launch].astype(np.int64), events.start_ns[launch])
    ahead = np.array([phase in AHEAD for phase in phases], dtype=np.bool_)
    ahead[launch == MISSING] = False
    return ahead


def _places(trace: RankTrace, gpu: Int64) -> Int64:
    """A number for stream, name and turn of each work within its step: the same place of the program."""
    events, step = trace.recording.events, trace.steps.of_event[gpu].astype(np.int64)
    kernel = np.unique(np.column_stack((events.lane[gpu], events.name[gpu])), axis=0, return_inverse=True)[1]
    # What was launched before the recording would shift the turns of the first step.
    kernel = np.where(trace.launch[gpu] == MISSING, MISSING, kernel.reshape(-1).astype(np.int64))
    order = np.lexsort((np.arange(len(gpu)), step, kernel))
    fresh = np.ones(len(gpu), dtype=np.bool_)
    fresh[1:] = (np.diff(kernel[order]) != 0) | (np.diff(step[order]) != 0)
    at = np.arange(len(gpu))
    turn = np.empty(len(gpu), dtype=np.int64)
    turn[order] = at - np.maximum.accumulate(np.where(fresh, at, 0))
    return kernel * (len(gpu) + 1) + turn
