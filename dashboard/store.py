"""What was read already, kept for all visitors of one server.

``st.cache_data`` would not do: it replays the progress bar, and it pickles what it keeps.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from traceinsight import api
from traceinsight.diagnosis import Diagnosis
from traceinsight.diagnosis.scaling import Scaling

from .source import Fingerprint
from .upload import is_upload

_Key, _Value = TypeVar("_Key"), TypeVar("_Value")
Progress = Callable[[int, int, str], None]
Request = tuple[Fingerprint, int | None]
"""Which files, and which run among them (None: the newest)."""

_MOST_JSON_BYTES = 256 * 1024 * 1024


class Recent(Generic[_Key, _Value]):
    """The last few results. Two visitors who want the same at once make it once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[_Key, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """The kept result, or a new one."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def drop(self, unwanted: Callable[[_Key], bool]) -> None:
        """Forget the results whose key is unwanted."""
        with self._lock:
            for key in [key for key in self._kept if unwanted(key)]:
                del self._kept[key]

    def has(self, key: _Key) -> bool:
        """Whether :meth:`get` will be quick."""
        return key in self._kept


class Store:
    """Diagnoses are small and many are kept; loaded traces are large: the last run only."""

    def __init__(self) -> None:
        self._diagnoses: Recent[Request, Diagnosis] = Recent(16)
        self._scalings: Recent[tuple[tuple[str, Fingerprint], ...], Scaling] = Recent(16)
        self._loaded: Recent[Request, api.Loaded] = Recent(1)
        self._timelines: Recent[Request, api.Timeline] = Recent(2)

    def forget(self, folder: Path) -> None:
        """Drop what was read from a folder that is no more."""

        def inside(request: Request) -> bool:
            return Path(request[0].path).is_relative_to(folder)

        self._diagnoses.drop(inside)
        self._loaded.drop(inside)
        self._timelines.drop(inside)
        self._scalings.drop(lambda runs: any(inside((files, None)) for _, files in runs))

    def is_known(self, request: Request) -> bool:
        """Whether the diagnosis is at hand, so that no progress need be shown."""
        return self._diagnoses.has(request)

    def diagnosis(self, request: Request, progress: Progress | None = None) -> Diagnosis:
        """Read a JSON report, or analyse traces. Raises what ``traceinsight.analyze`` raises."""
        return self._diagnoses.get(request, lambda: self._diagnose(request, progress))

    def loaded(self, request: Request, progress: Progress | None = None) -> api.Loaded:
        """The traces themselves."""
        files, run = request
        return self._loaded.get(request, lambda: api.load(files.path, run=run, progress=progress))

    def timeline(self, request: Request) -> api.Timeline:
        """All ranks on one clock."""
        return self._timelines.get(request, lambda: api.timeline(self.loaded(request)))

    def scaling(self, runs: Mapping[str, Fingerprint]) -> Scaling:
        """Runs by name, at several world sizes."""
        paths = {name: files.path for name, files in runs.items()}
        return self._scalings.get(tuple(runs.items()), lambda: api.scaling(paths))

    def _diagnose(self, request: Request, progress: Progress | None) -> Diagnosis:
        path = Path(request[0].path)
        report = read_report(path)
        if report is not None:
            return report
        found = api.diagnose(self.loaded(request, progress))
        return without_folder(found, path if path.is_dir() else path.parent) if is_upload(path) else found


def read_report(path: Path) -> Diagnosis | None:
    """The diagnosis in a file that ``analyze --format json`` wrote; None for anything else."""
    if not path.is_file() or path.suffix.lower() != ".json" or path.stat().st_size > _MOST_JSON_BYTES:
        return None
    with path.open("rb") as stream:
        if b'"schema_version"' not in stream.read(256):
            return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Diagnosis)
    except (msgspec.DecodeError, UnicodeDecodeError):  # also what has another shape (ValidationError)
        return None


def without_folder(diagnosis: Diagnosis, folder: Path) -> Diagnosis:
    """The same with names of files in place of their paths, wherever they stand: also in notes."""
    prefix = msgspec.json.encode(f"{folder}/")[1:-1]
    return msgspec.json.decode(msgspec.json.encode(diagnosis).replace(prefix, b""), type=Diagnosis)
