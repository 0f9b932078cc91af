"""Which formats a report can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.document import Document
from traceinsight.report.options import ReportOptions


class Render(Protocol):
    """A reporter: text out of a diagnosis, nothing read and nothing written."""

    def __call__(self, diagnosis: Diagnosis, options: ReportOptions) -> str:
        """The report, ending with a newline."""
        ...


Draw = Callable[[Document, ReportOptions], str]


@dataclass(frozen=True, slots=True)
class Format:
    """A format by name, the file endings that mean it, and where its reporter is.

    The module is imported when it is used: JSON needs no rich.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str

    def render(self, diagnosis: Diagnosis, options: ReportOptions) -> str:
        """Draw the report."""
        return cast("Render", import_module(self.module).render)(diagnosis, options)

    def draw(self, document: Document, options: ReportOptions) -> str:
        """Draw any document; JSON draws none, because its result is the typed object itself."""
        return cast("Draw", import_module(self.module).draw)(document, options)


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        one.name: one
        for one in (
            Format("terminal", (".txt",), "traceinsight.report.terminal"),
            Format("json", (".json",), "traceinsight.report.json_document"),
            Format("markdown", (".md", ".markdown"), "traceinsight.report.markdown"),
            Format("html", (".html", ".htm"), "traceinsight.report.html"),
        )
    }
)


def format_for(file_name: str) -> Format | None:
    """The format a file's ending stands for; None when it stands for none."""
    lower = file_name.lower()
    return next((one for one in FORMATS.values() if lower.endswith(one.suffixes)), None)
