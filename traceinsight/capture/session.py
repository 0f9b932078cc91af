"""The one profiling session that a process can have.

Kineto lets a second profiler be prepared while a first one warms up or records: the first is cancelled in
silence, and whichever asks for its results afterwards takes the process down with a segmentation fault. Hence
ours is not opened beside another, and it is closed before another is opened.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch.autograd import profiler as backend

_ENTRANCES = ("_prepare_profiler", "_enable_profiler")
"""Functions of ``torch.autograd.profiler`` that every profiler written in Python goes through."""


def other_profiler() -> str | None:
    """Return what another profiler of this process is doing, None if there is none.

    Recording is something torch can be asked, on this thread (the first) and on the others (the second).
    Warming up it does not tell, so the objects themselves are looked at.
    """
    if torch.autograd._profiler_enabled() or getattr(backend, "_is_profiler_enabled", False):
        return "is recording"
    if _any_in_session():
        gc.collect()  # one that was given up without being stopped stays in memory for a while
        if _any_in_session():
            return "is warming up"
    return None


def _any_in_session() -> bool:
    # An object refers to its class: found in C, tens of milliseconds for a million objects.
    kinds = (*_family(backend.profile), *_family(torch.profiler.profile))
    return any(_in_session(candidate) for candidate in gc.get_referrers(*kinds))


def _family(kind: type) -> Iterator[type]:
    yield kind
    below: list[type] = kind.__subclasses__()
    for derived in below:
        yield from _family(derived)


def _in_session(candidate: Any) -> bool:
    kind = type(candidate)  # isinstance would run the code of objects that pose as others
    if issubclass(kind, backend.profile):
        return bool(candidate.entered) and candidate.kineto_results is None
    if issubclass(kind, torch.profiler.profile):  # one that keeps its events has results from before
        running = getattr(candidate, "step_rec_fn", None) is not None
        return running and candidate.current_action is not torch.profiler.ProfilerAction.NONE
    return False


class Watch:
    """Calls ``give_way`` right before another profiler of this process is prepared or starts to record.

    torch has no hook for that, so its two functions are wrapped between ``start`` and ``stop``: for as long
    as a window is open. ``give_way`` is told whether the other one is on the thread that called ``start``.
    """

    def __init__(self, give_way: Callable[[bool], object]) -> None:
        self._give_way = give_way
        self._own = False
        self._thread = 0
        self._originals: dict[str, Any] = {}

    @contextmanager
    def own(self) -> Iterator[None]:
        """Say that what happens meanwhile is done by the profiler that is guarded."""
        before, self._own = self._own, True
        try:
            yield
        finally:
            self._own = before

    def start(self) -> None:
        """Watch from now on."""
        self._thread = threading.get_ident()
        for name in _ENTRANCES:
            if original := getattr(backend, name, None):
                self._originals[name] = original
                setattr(backend, name, self._watched(original))

    def stop(self) -> None:
        """Put torch's functions back."""
        while self._originals:
            setattr(backend, *self._originals.popitem())

    def _watched(self, original: Callable[..., object]) -> Callable[..., object]:
        @wraps(original)
        def watched(*arguments: Any, **named: Any) -> object:
            same_thread = threading.get_ident() == self._thread
            if not (self._own and same_thread):
                self._give_way(same_thread)
            return original(*arguments, **named)

        return watched
