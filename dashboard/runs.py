"""The runs that lie in the folder given at the start, for pages that look at several of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traceinsight.api import Loaded
from traceinsight.diagnosis import Diagnosis
from traceinsight.diagnosis.scaling import Scaling

from . import text
from .source import Root, fingerprint
from .store import Store, read_report

UPLOAD = ":upload"
"""The name of what the visitor uploaded; no path in the folder begins so on its own."""

_MOST_REPORTS = 100


@dataclass(frozen=True, slots=True)
class Runs:
    """Folders of traces and JSON reports by their path in the folder; nothing outside of it is ever read.

    ``upload`` is what this visitor brought: one run more, of the name ``UPLOAD``.
    """

    root: Root
    store: Store
    upload: Path | None = None

    def names(self) -> list[str]:
        """Folders first; "" is the folder itself, where traces lie in it directly."""
        own = [] if self.upload is None else [UPLOAD]
        return [*own, *self._folders(), *self._reports()]

    def folders(self) -> list[str]:
        """Those that hold traces; a trace file given at the start counts, a report does not."""
        own = [] if self.upload is None or read_report(self.upload) is not None else [UPLOAD]
        return [*own, *self._folders()]

    def title(self, name: str) -> str:
        """What to call a run."""
        return (
            "your upload" if name == UPLOAD else text.name(name) or f"all of {text.name(self.root.path.name)}"
        )

    def resolve(self, name: str) -> Path:
        """The path of a run. Raises UsageError outside the root."""
        return self.upload if name == UPLOAD and self.upload is not None else self.root.resolve(name)

    def _folders(self) -> list[str]:
        if self.root.path.is_file():
            return [] if read_report(self.root.path) is not None else [""]
        return [one for one in self.root.choices() if self._holds_traces(self.root.path / one)]

    def diagnosis(self, name: str) -> Diagnosis:
        """The run's diagnosis. Raises what ``traceinsight.analyze`` raises; UsageError outside the root."""
        return self.store.diagnosis((fingerprint(self.resolve(name)), None))

    def loaded(self, name: str) -> Loaded | None:
        """The run's traces; None for a report."""
        path = self.resolve(name)
        if read_report(path) is not None:
            return None
        return self.store.loaded((fingerprint(path), None))

    def scaling(self, names: Sequence[str]) -> Scaling:
        """Runs of several world sizes. Raises what ``traceinsight.scaling`` raises."""
        titles = {name: self.title(name) if name == UPLOAD else name or "." for name in names}
        return self.store.scaling({titles[name]: fingerprint(self.resolve(name)) for name in names})

    def _holds_traces(self, folder: Path) -> bool:
        if folder.is_file():
            return True
        files = [one for one in folder.iterdir() if one.is_file() and one.name != "run.json"]
        return any(one.name.endswith((".gz", ".zip", ".json")) and not _is_report(one) for one in files)

    def _reports(self) -> list[str]:
        if self.root.path.is_file():
            return []
        found = []
        for folder in self.root.choices():
            found += [one for one in sorted((self.root.path / folder).glob("*.json")) if _is_report(one)]
        return [one.relative_to(self.root.path).as_posix() for one in found[:_MOST_REPORTS]]


def _is_report(path: Path) -> bool:
    """Whether a file begins as our reports do; cheap, because a folder may hold a thousand traces."""
    if path.suffix != ".json" or path.name == "run.json" or not path.is_file():
        return False
    with path.open("rb") as stream:
        head = stream.read(256)
    return b'"schema_version"' in head and b'"generator"' in head
