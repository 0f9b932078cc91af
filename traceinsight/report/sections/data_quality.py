"""How good the data is: notes grouped by what they say, not one line per event."""

from __future__ import annotations

from collections import defaultdict

from traceinsight.base.units import format_ranks
from traceinsight.diagnosis import DataQuality, Diagnosis
from traceinsight.diagnosis.prediction import WhatIf
from traceinsight.report.document import Block, Facts, Paragraph, Section, Tone
from traceinsight.report.text import file_name

_SEVERITIES = ("error", "warning", "info")
_MEANING = {"error": "data was lost", "warning": "a number may be affected", "info": "no number is affected"}
_TONES: dict[str, Tone] = {"error": "critical", "warning": "minor", "info": "strong"}
_FILES_SHOWN = 3
_RANKS_SHOWN = 12


def section(diagnosis: Diagnosis | WhatIf) -> Section:
    """One block per code, the gravest first."""
    if not diagnosis.data_quality:
        return Section("Data quality", (Paragraph("Nothing to report: all data was read and used."),))
    groups: dict[tuple[str, str], list[DataQuality]] = defaultdict(list)
    for note in diagnosis.data_quality:
        groups[note.severity, note.code].append(note)
    blocks: list[Block] = []
    for key in sorted(groups, key=lambda key: (_SEVERITIES.index(key[0]), key[1])):
        blocks += _group(groups[key])
    return Section("Data quality", tuple(blocks))


def _group(notes: list[DataQuality]) -> list[Block]:
    first = notes[0]
    rows = [("Says", first.message)]
    if len(notes) > 1:
        rows.append(("Times", _times(notes)))
    ranks = [note.rank for note in notes if note.rank is not None]
    if ranks:
        rows.append(("Ranks", format_ranks(ranks, max_parts=_RANKS_SHOWN)))
    files = list(dict.fromkeys(note.file for note in notes if note.file is not None))
    if files:
        rows.append(("Files", _files(files)))
    title = f"{first.severity}: {first.code} ({_MEANING[first.severity]})"
    return [Paragraph(title, _TONES[first.severity]), Facts(tuple(rows), indent=1)]


def _times(notes: list[DataQuality]) -> str:
    """Messages hold their own counts, so a group shows its first and says how many there are."""
    counts = [note.count for note in notes if note.count is not None]
    total = f"{sum(counts):,} in all, in " if len(counts) == len(notes) else ""
    return f"{total}{len(notes):,} notes; the first is shown"


def _files(files: list[str]) -> str:
    shown = ", ".join(file_name(file) for file in files[:_FILES_SHOWN])
    more = len(files) - _FILES_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown
