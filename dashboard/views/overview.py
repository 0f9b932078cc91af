"""Overview: the verdict, what to change next, and where the time went."""

from __future__ import annotations

import shlex

import streamlit as st

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.document import Block, Facts, Paragraph
from traceinsight.report.tiles import tiles

from ..charts.partition import partition_bars
from ..charts.remedies import Change, predicted, step_after_each, waterfall
from ..context import Context, show
from ..text import block, escape, name, page, paragraph, tile
from .parts import chart, prose, section


def draw(context: Context) -> None:
    """Ten seconds: the sentence, four numbers, the first thing to do."""
    show(_tiles(context.diagnosis))
    st.subheader("What to change next", anchor=False)
    _findings(context)
    _roadmap(context)
    remedies = step_after_each(context.diagnosis, context.colors)
    if remedies is not None:
        chart(
            "The step with each remedy alone", remedies, "", key="remedies",
            note="Each bar is the step with that one change; gains overlap, so they do not add up. A ceiling "
            "is the time that would vanish at best; the line is its interval.",
        )  # fmt: skip
    chart(
        "Where the time went",
        partition_bars(context.diagnosis, context.colors),
        "Not measured: no device activity inside a step was recorded.",
        note="Share of each rank's step window, all analysed steps together. Hover for what a part means.",
        key="partition",
    )
    prose(context, "Not judged")
    prose(context, "Checked and in order")


def _roadmap(context: Context) -> None:
    """Change after change as replayed; where nothing is predicted, why not."""
    diagnosis = context.diagnosis
    changes = predicted(diagnosis)
    if changes:
        chart(
            "The way down, change after change", waterfall(diagnosis, context.colors), "", key="roadmap",
            note="Predicted by replaying the measured steps; each change is on top of those above it. The "
            "line is the interval, the factor is against the line above, per example.",
        )  # fmt: skip
        show(*(paragraph(line, "muted") for line in risks(diagnosis)))
        with st.expander("Try it on these traces"):
            st.code(command(changes), language="bash", wrap_lines=True)
    elif diagnosis.replay is not None and not diagnosis.replay.predicted and diagnosis.findings:
        show(paragraph(f"No gain is predicted, only ceilings are given: {diagnosis.replay.reason}.", "muted"))


def risks(diagnosis: Diagnosis) -> list[str]:
    """What each predicted change may do to the model, by number."""
    said = {one.rule: one.quality_risk for one in diagnosis.findings}
    return [
        f"{number}. {one.edit}: {said[one.rule]}"
        for number, one in enumerate(predicted(diagnosis), start=1)
        if one.rule in said
    ]


def command(changes: list[Change]) -> str:
    """The same prediction on the command line."""
    return "traceinsight whatif TRACES " + " ".join(
        f"--edit {shlex.quote(name(one.edit))}" for one in changes
    )


def _findings(context: Context) -> None:
    found = section(context, "What to change next")
    for card in _cards(found.blocks if found else ()):
        first = card[0]
        if isinstance(first, Paragraph) and first.number is not None:
            inside = "".join(block(one) for one in card[1:] if isinstance(one, Paragraph | Facts))
            title = f'<p class="strong">{first.number}. {escape(first.text)}</p>'
            st.html(page(f'<div class="card c-{first.tone}">{title}{inside}</div>'))
        else:
            show(*(block(one) for one in card))


def _cards(blocks: tuple[Block, ...]) -> list[list[Block]]:
    """A numbered paragraph begins a finding; a paragraph that is not indented ends it."""
    cards: list[list[Block]] = []
    for one in blocks:
        begins = isinstance(one, Paragraph) and (one.number is not None or one.indent == 0)
        if begins or not cards:
            cards.append([])
        cards[-1].append(one)
    return cards


def _tiles(diagnosis: Diagnosis) -> str:
    numbers = [tile(one.label, one.value, one.note) for one in tiles(diagnosis)]
    return f'<div class="tiles">{"".join(numbers)}</div>' if numbers else ""
