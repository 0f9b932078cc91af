"""Which kernels the profiler lost, and when they ran: from launches, the other steps and other ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import GPU_WORK, MISSING, EventKind, Int64
from traceinsight.trace.trace_set import MatchedCollective, TraceSet


@dataclass(frozen=True, slots=True)
class Found:
    """A lost kernel: the call that launched it, one like it in another step, and when it ran.

    Times are on the rank's clock. ``met`` is the collective that it was a part of.
    """

    call: int
    twin: int
    start_ns: int
    end_ns: int
    met: MatchedCollective | None


class Meetings:
    """The collectives of a run, by the place that they have in a step."""

    def __init__(self, trace_set: TraceSet) -> None:
        self._series: dict[tuple[object, ...], list[MatchedCollective]] = defaultdict(list)
        self._of: dict[tuple[int, int], MatchedCollective] = {}
        # By their ends, which are in order: the first launches may be those of different ranks.
        for one in sorted(trace_set.collectives, key=lambda one: min(one.ends_ns)):
            self._series[self._key(one, one.step)].append(one)
            self._of |= {(rank, part.event): one for rank, part in zip(one.ranks, one.members, strict=True)}

    @staticmethod
    def _key(one: MatchedCollective, step: int) -> tuple[object, ...]:
        return (one.operation, one.label, one.group, step)

    def of(self, rank: int, event: int) -> MatchedCollective | None:
        """The collective that a kernel of a rank belongs to."""
        return self._of.get((rank, event))

    def like(self, twin: MatchedCollective, rank: int, step: int) -> MatchedCollective | None:
        """The collective of that step in the twin's place, if the rank's part in it is lost."""
        theirs, ours = self._series[self._key(twin, twin.step)], self._series[self._key(twin, step)]
        if len(theirs) != len(ours):
            return None
        found = ours[next(at for at, one in enumerate(theirs) if one is twin)]
        return found if rank in found.absent_ranks else None


class RankLosses:
    """The launches of one rank by their place in a step, and its streams in the order of launch."""

    def __init__(self, trace_set: TraceSet, trace: RankTrace, meetings: Meetings) -> None:
        self._set, self._trace, self._meetings = trace_set, trace, meetings
        self._events = trace.recording.events
        gpu = trace.recording.of_kind(*GPU_WORK)
        gpu = gpu[trace.launch[gpu] != MISSING]
        self._kernels: dict[int, list[int]] = defaultdict(list)
        for event, call in zip(gpu.tolist(), trace.launch[gpu].tolist(), strict=True):
            self._kernels[call].append(event)
        self._gpu = gpu
        self._streams = self._in_order(())
        self._calls, self._places = self._launches(gpu)

    def _in_order(self, found: Sequence[Found]) -> list[tuple[int, Int64, Int64, Int64]]:
        """Per stream (lane, launches, starts, latest ends so far), ns, in order of launch; with the found."""
        events, launch = self._events, self._trace.launch
        more = np.array([(one.call, one.twin, one.start_ns, one.end_ns) for one in found], dtype=np.int64)
        call, twin, start_ns, end_ns = more.reshape(-1, 4).T
        lane = np.concatenate((events.lane[self._gpu], events.lane[twin]))
        launched_ns = events.start_ns[np.concatenate((launch[self._gpu], call))]
        starts_ns = np.concatenate((events.start_ns[self._gpu], start_ns))
        ends_ns = np.concatenate((events.end_ns[self._gpu], end_ns))
        streams = []
        for number in np.unique(lane).tolist():
            mine = np.flatnonzero(lane == number)
            mine = mine[np.argsort(launched_ns[mine], kind="stable")]
            ends = np.maximum.accumulate(ends_ns[mine])
            streams.append((number, launched_ns[mine], starts_ns[mine], ends))
        return streams

    def _launches(self, gpu: Int64) -> tuple[dict[tuple[int, int], list[int]], dict[int, int]]:
        """Per thread and step its calls that launch work, in order; and the place of each among them."""
        recording, launch = self._trace.recording, self._trace.launch
        runtime = recording.of_kind(EventKind.RUNTIME)
        runtime = runtime[self._events.correlation[runtime] != MISSING]
        launching = np.unique(self._events.name[launch[gpu]])
        calls: dict[tuple[int, int], list[int]] = defaultdict(list)
        places = {}
        chosen = runtime[np.isin(self._events.name[runtime], launching)]
        columns = (chosen, self._events.lane[chosen], self._trace.steps.of_event[chosen])
        for call, lane, step in zip(*(column.tolist() for column in columns), strict=True):
            places[call] = len(calls[lane, step])
            calls[lane, step].append(call)
        return calls, places

    def found(self) -> list[Found]:
        """The lost kernels of the captured steps.

        They are timed twice: what held one up may have been lost as well.
        """
        numbers = [step.number for step in self._trace.steps.steps]
        lost = []
        for (lane, step), calls in self._calls.items():
            if 0 <= step < len(numbers):
                gone = [call for call in calls if call not in self._kernels]
                lost += [(call, list(self._twins(call, lane, step)), numbers[step]) for call in gone]
        lost = [one for one in lost if one[1]]
        found: list[Found] = []
        for _ in range(ROUNDS if lost else 0):
            self._streams = self._in_order(found)
            found = [one for one in (self._timed(*each) for each in lost) if one is not None]
        return found

    def _twins(self, call: int, lane: int, step: int) -> Iterator[int]:
        """The kernels that this place launched in other steps; the nearest calls must be the same ones.

        Places count from the begin of the step, and from its end where it has more or fewer calls.
        """
        mine, place = self._calls[lane, step], self._places[call]
        for other in range(len(self._trace.steps.steps)):
            theirs = self._calls.get((lane, other), [])
            for at in dict.fromkeys((place, place + len(theirs) - len(mine))):
                if other == step or not 0 <= at < len(theirs) or len(self._kernels.get(theirs[at], ())) != 1:
                    continue
                if self._alike(mine, place, theirs, at):
                    yield self._kernels[theirs[at]][0]
                    break

    def _alike(self, mine: Sequence[int], place: int, theirs: Sequence[int], at: int) -> bool:
        """Whether the calls around two places are the same, as far as their kernels are known."""
        for by in (-2, -1, 0, 1, 2):
            if 0 <= place + by < len(mine) and 0 <= at + by < len(theirs):
                ours, other = mine[place + by], theirs[at + by]
                if self._events.name[ours] != self._events.name[other]:
                    return False
                both = [self._names(call) for call in (ours, other)]
                if all(both) and both[0] != both[1]:
                    return False
        return True

    def _names(self, call: int) -> list[int]:
        return [int(self._events.name[one]) for one in self._kernels.get(call, ())]

    def _timed(self, call: int, twins: Sequence[int], step: int) -> Found | None:
        """When it ran: no earlier than what held its twins allows, and no later than its successors.

        Rather too short than too long: what waited for its end would seem to have started before it.
        """
        start_ns = self._ready_ns(call, twins)
        length = int(self._events.dur_ns[list(twins)].min())
        lane = int(self._events.lane[twins[-1]])
        free_ns, next_ns = self._room(lane, int(self._events.start_ns[call]))
        meeting = self._meetings.of(self._trace.rank, twins[-1])
        if meeting is None:
            if start_ns + length / 2 > next_ns:
                start_ns = max(next_ns - length, free_ns)
            return Found(call, twins[-1], start_ns, max(min(start_ns + length, next_ns), start_ns), None)
        met = self._meetings.like(meeting, self._trace.rank, step)
        if met is None:
            return None
        end_ns = min(min(met.ends_ns) - EARLY_NS + self._set.offset_ns(self._trace.rank), next_ns)
        if met.synchronising:
            start_ns = self._arrival_ns(start_ns, end_ns, met, twins)
        return Found(call, twins[-1], min(start_ns, end_ns), end_ns, met)

    def _arrival_ns(self, start_ns: int, end_ns: int, met: MatchedCollective, twins: Sequence[int]) -> int:
        """The arrival, such that the transfer takes about as long as in the other steps.

        Where the members that are there waited longer than for any transfer, it was this one they waited for.
        """
        others = [self._meetings.of(self._trace.rank, twin) for twin in twins]
        transfers = [
            min(one.ends_ns) - one.last_arrival_ns for one in others if one is not None and one.complete
        ]
        if not transfers:
            return start_ns
        earliest_ns = round(end_ns - LONGER * max(transfers))
        last_ns = met.last_arrival_ns + self._set.offset_ns(self._trace.rank)
        if last_ns < earliest_ns:
            start_ns = max(start_ns, earliest_ns)
        return min(start_ns, round(end_ns - min(transfers) / LONGER))

    def _ready_ns(self, call: int, twins: Sequence[int]) -> int:
        """The latest of: launch, and end of earlier launched work on each stream, each with its delay.

        The delay is the least that the twins show; one that held them shows next to none. What a stream was
        still at work on when a twin started held none of them, but what it was given so many launches earlier
        may have.
        """
        events, launch = self._events, self._trace.launch
        called_ns, began_ns = events.start_ns[launch[list(twins)]], events.start_ns[list(twins)]
        mine_ns = int(events.start_ns[call])
        ready_ns = mine_ns + int((began_ns - called_ns).min())
        for _, launched_ns, _, ends_ns in self._streams:
            launched = np.searchsorted(launched_ns, called_ns) - 1
            ended = np.searchsorted(ends_ns, began_ns, side="right") - 1
            back = max(int(np.where(launched >= 0, launched - ended, 0).max()), 0)
            own, tells = int(np.searchsorted(launched_ns, mine_ns)) - 1 - back, launched >= back
            if tells.any() and own >= 0:
                delay_ns = int((began_ns - ends_ns[launched - back])[tells].min())
                ready_ns = max(ready_ns, int(ends_ns[own]) + delay_ns)
        return ready_ns

    def _room(self, lane: int, called_ns: int) -> tuple[int, int]:
        """Between which moments the stream had nothing else to do."""
        for stream, launched, starts, ends in self._streams:
            if stream == lane:
                before, after = (int(np.searchsorted(launched, called_ns, side)) for side in _SIDES)
                free_ns = int(ends[before - 1]) if before else called_ns
                return free_ns, max(int(starts[after]), free_ns) if after < len(starts) else _NEVER
        return called_ns, _NEVER


ROUNDS = 2
"""How often lost kernels are timed, each time with the times found before."""

_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")

EARLY_NS = 5_000
"""Members of a collective end within some microseconds of each other, as far as clocks tell."""

LONGER = 1.2
"""Transfers of one place differ by less than this factor from step to step."""

_NEVER = int(np.iinfo(np.int64).max // 2)
