"""Slow answers straight from the trace files: plain loops over parsed JSON, no product code.

Times are integer nanoseconds, read through ``Decimal`` so that no stamp loses a digit. Definitions follow
DESIGN section 4; the comment at each function says which.
"""

import gzip
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

KERNEL_CATEGORIES = {"kernel", "Kernel"}
COPY_CATEGORIES = {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}
RUNTIME_CATEGORIES = {"cuda_runtime", "cuda_driver", "Runtime"}
COMMUNICATION_PARTS = ("nccl", "mscclpp", "cross_device_reduce", "_all_reduce_kernel")


@dataclass(frozen=True)
class GpuEvent:
    """One piece of work on a device stream. ``kind`` is compute, comm or copy."""

    name: str
    kind: str
    start: int
    end: int
    stream: Any
    correlation: Any
    launch: "HostCall | None"
    args: dict[str, Any] = field(hash=False, compare=False)


@dataclass(frozen=True)
class HostCall:
    """One runtime call that launched device work."""

    start: int
    end: int
    thread: Any


@dataclass(frozen=True)
class Step:
    """One ``ProfilerStep#N`` on the host."""

    number: int
    start: int
    end: int


def read_json(path: Path) -> Any:
    """The parsed file with every number exact."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return json.loads(raw, parse_float=Decimal)


class RawTrace:
    """One rank's file, as far as the oracles need it."""

    def __init__(self, parsed: dict[str, Any] | list[Any]) -> None:
        document = parsed if isinstance(parsed, dict) else {"traceEvents": parsed}  # old bare lists
        self.document = document
        self.base = int(document.get("baseTimeNanoseconds") or 0)
        self.events = [e for e in document["traceEvents"] if e.get("ph") == "X" and "dur" in e]
        self.rank = (document.get("distributedInfo") or {}).get("rank")
        self.launches = self._launches()
        self.gpu = sorted(self._gpu_events(), key=lambda e: (e.start, e.end))
        self.steps = self._steps()

    @classmethod
    def read(cls, path: Path) -> "RawTrace":
        return cls(read_json(path))

    def span(self, event: dict[str, Any]) -> tuple[int, int]:
        """Start and end of an event, absolute nanoseconds."""
        start = self.base + round(Decimal(str(event["ts"])) * 1000)
        return start, start + round(Decimal(str(event["dur"])) * 1000)

    def annotations(self, name: str) -> list[tuple[int, int, Any]]:
        """(start, end, thread) of every host annotation of that exact name, in time order."""
        found = []
        for event in self.events:
            if event["name"] == name and event.get("cat") in ("user_annotation", "cpu_op", "Operator"):
                start, end = self.span(event)
                found.append((start, end, event.get("tid")))
        return sorted(found, key=lambda a: a[:2])

    def _launches(self) -> dict[Any, HostCall]:
        launches = {}
        for event in self.events:
            if event.get("cat") in RUNTIME_CATEGORIES:
                correlation = event.get("args", {}).get("correlation")
                if correlation is not None:
                    launches[correlation] = HostCall(*self.span(event), event.get("tid"))
        return launches

    def _gpu_events(self) -> Iterable[GpuEvent]:
        for event in self.events:
            category = event.get("cat")
            if category not in KERNEL_CATEGORIES | COPY_CATEGORIES:
                continue
            args = event.get("args", {})
            start, end = self.span(event)
            correlation = args.get("correlation")
            yield GpuEvent(
                name=event["name"],
                kind=kind_of(category, event["name"]),
                start=start,
                end=end,
                stream=args.get("stream", event.get("tid")),
                correlation=correlation,
                launch=self.launches.get(correlation),
                args=args,
            )

    def _steps(self) -> list[Step]:
        steps = []
        for event in self.events:
            if event["name"].startswith("ProfilerStep#") and event.get("cat") != "gpu_user_annotation":
                steps.append(Step(int(event["name"].split("#")[1]), *self.span(event)))
        return sorted(steps, key=lambda s: s.start)

    def communication(self) -> list[GpuEvent]:
        """Communication kernels in time order."""
        return [e for e in self.gpu if e.kind == "comm"]


def kind_of(category: str, name: str) -> str:
    """compute, comm or copy; memory sets count as copies."""
    if category in COPY_CATEGORIES:
        return "copy"
    return "comm" if any(part in name for part in COMMUNICATION_PARTS) else "compute"


def union_length(spans: Iterable[tuple[int, int]]) -> int:
    """Time covered by at least one span, by merging in start order."""
    total, reached = 0, None
    for start, end in sorted(spans):
        if reached is None or start > reached:
            total, reached = total + end - start, end
        elif end > reached:
            total, reached = total + end - reached, end
    return total


def device_windows(trace: RawTrace) -> dict[int, tuple[int, int]]:
    """GPU step window: first GPU event launched in the step to the first launched in the next.

    A call belongs to the last step that began before it. The last step has no next: it is left out.
    """
    first: dict[int, int] = {}
    for event in trace.gpu:
        if event.launch is None:
            continue
        begun = [s.number for s in trace.steps if s.start <= event.launch.start]
        if begun:
            first[begun[-1]] = min(event.start, first.get(begun[-1], event.start))
    order = [s.number for s in trace.steps if s.number in first]
    return {a: (first[a], first[b]) for a, b in itertools.pairwise(order)}


def partition(trace: RawTrace, window: tuple[int, int]) -> dict[str, int]:
    """compute, exposed comm, exposed copy and idle of a window, interval by elementary interval.

    Compute hides communication, and both hide copies; what nothing covers is idle.
    """
    begin, end = window
    changes: list[tuple[int, str, int]] = []
    for event in trace.gpu:
        start, stop = max(event.start, begin), min(event.end, end)
        if start < stop:
            changes += [(start, event.kind, 1), (stop, event.kind, -1)]
    running = {"compute": 0, "comm": 0, "copy": 0}
    parts = {"compute": 0, "comm": 0, "copy": 0, "idle": 0}
    now = begin
    for at, kind, change in sorted([*changes, (end, "copy", 0)]):
        owner = next((k for k in ("compute", "comm", "copy") if running[k]), "idle")
        parts[owner] += at - now
        running[kind] += change
        now = at
    return parts


@dataclass(frozen=True)
class Forward:
    """Device work launched inside one ``## forward ##``."""

    span: int
    comm: int
    exposed_comm: int

    @property
    def share(self) -> float:
        return self.comm / self.span


def forward_communication(trace: RawTrace, name: str = "## forward ##") -> list[Forward]:
    """Per forward annotation: span of the GPU events launched in it on its thread, and their comm."""
    answers = []
    for start, end, thread in trace.annotations(name):
        launched = [
            e
            for e in trace.gpu
            if e.launch is not None and e.launch.thread == thread and start <= e.launch.start < end
        ]
        if not launched:
            continue
        window = (min(e.start for e in launched), max(e.end for e in launched))
        comm = [(e.start, e.end) for e in launched if e.kind == "comm"]
        compute = [(e.start, e.end) for e in trace.gpu if e.kind == "compute"]
        exposed = union_length(comm + compute) - union_length(compute)
        answers.append(Forward(window[1] - window[0], union_length(comm), exposed))
    return answers


@dataclass(frozen=True)
class Meeting:
    """One synchronising collective seen across ranks: each member's (start, end)."""

    members: dict[int, tuple[int, int]]

    @property
    def end_spread(self) -> int:
        ends = [end for _, end in self.members.values()]
        return max(ends) - min(ends)

    @property
    def last_rank(self) -> int:
        return max(self.members, key=lambda r: self.members[r][0])

    def wait(self, rank: int) -> int:
        return self.members[self.last_rank][0] - self.members[rank][0]

    @property
    def transfer(self) -> int:
        """End - last arrival, on the mean of the ends."""
        ends = [end for _, end in self.members.values()]
        return sum(ends) // len(ends) - self.members[self.last_rank][0]

    def lead(self, group: set[int]) -> int:
        """How long after everybody outside ``group`` its last member came."""
        late = max(self.members[r][0] for r in self.members if r in group)
        return late - max(self.members[r][0] for r in self.members if r not in group)


def meetings(traces: Iterable[RawTrace], tolerance: int) -> list[Meeting]:
    """Collectives matched by their ends alone: kernels of different ranks that end within ``tolerance``.

    Good for captures of one host (one clock) whose collectives end further apart than the tolerance.
    """
    ends = sorted((e.end, t.rank, e.start) for t in traces for e in t.communication())
    found: list[dict[int, tuple[int, int]]] = []
    first_end = None
    for end, rank, start in ends:
        if first_end is None or end - first_end > tolerance or rank in found[-1]:
            found.append({})
            first_end = end
        found[-1][rank] = (start, end)
    return [Meeting(members) for members in found]
