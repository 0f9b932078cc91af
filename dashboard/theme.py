"""How everything looks: one colour, one meaning, the same as in the HTML report (a test compares the two).

The hues are those of Okabe and Ito, which people with any colour vision can tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go

PARTS = {
    "compute": "#0072b2",
    "transfer": "#e69f00",
    "wait": "#d55e00",
    "unsplit": "#cc79a7",
    "copy": "#009e73",
}
"""Meanings whose colour is the same on a light and on a dark page."""

REPLICA_SYNC = "#56b4e9"
"""A part only where sizes are compared, so no colour of the step's own parts."""

MEANINGS = {
    "compute": "at least one compute kernel runs",
    "transfer": "communication after the last member arrived, with nothing computing",
    "wait": "communication before the last member arrived, with nothing computing",
    "unsplit": "communication whose peers were not captured or matched: neither transfer nor wait is known",
    "copy": "copies while nothing computes or communicates",
    "idle": "nothing runs on the device",
}


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours that depend on the page, as hex codes."""

    paper: str
    panel: str
    ink: str
    muted: str
    line: str
    idle: str
    critical: str
    major: str
    minor: str
    good: str

    def part(self, name: str) -> str:
        """The colour that stands for a part of the step, and for nothing else."""
        return self.idle if name == "idle" else PARTS[name]


LIGHT = Palette(
    paper="#ffffff", panel="#f5f7f9", ink="#16202b", muted="#55616e", line="#d9dfe5", idle="#c4c9cf",
    critical="#a4161a", major="#8f3b00", minor="#6b5600", good="#00664b",
)  # fmt: skip
DARK = Palette(
    paper="#171717", panel="#24272b", ink="#e8edf2", muted="#a2aebb", line="#3a4047", idle="#5b6570",
    critical="#ff8a8a", major="#ffb27a", minor="#f0d264", good="#5fd6b0",
)  # fmt: skip


def palette(kind: str | None) -> Palette:
    """The palette for Streamlit's theme type, "light" or "dark"."""
    return DARK if kind == "dark" else LIGHT


def figure(colors: Palette, *, height: int, x_title: str = "", y_title: str = "") -> go.Figure:
    """An empty figure with the margins, grid and fonts that all charts share."""
    grid = {"gridcolor": colors.line, "zerolinecolor": colors.line, "automargin": True, "fixedrange": True}
    return go.Figure(
        layout={
            "height": height,
            "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
            "font": {"color": colors.ink, "size": 13},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": {"title": {"text": x_title}, **grid},
            "yaxis": {"title": {"text": y_title}, "ticklabelstandoff": 6, **grid},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "traceorder": "normal"},
            "hoverlabel": {"align": "left"},
            "bargap": 0.25,
        }
    )


def css(colors: Palette) -> str:
    """The style of the pieces that Streamlit has no element for."""
    return f"""<style>
.block-container {{ padding-top: 4rem; max-width: 76rem; }}
h3 {{ font-size: 1.3rem !important; }}
.ti h1 {{ font-size: clamp(1.3rem, 2.6vw, 1.85rem); line-height: 1.28; font-weight: 700;
  padding: 0; margin: 0 0 .4rem; }}
.ti h1 .rest {{ display: block; font-size: 1.05rem; font-weight: 500; margin-top: .3rem; }}
.ti h1.small .rest {{ font-size: .95rem; }}
.ti h1.small {{ font-size: 1.05rem; margin: 0; }}
.ti {{ overflow-wrap: anywhere; line-height: 1.5; }} .ti * {{ unicode-bidi: isolate; }}
.ti p {{ margin: 0 0 .4rem; max-width: 52rem; }}
[data-testid="stButtonGroup"] button {{ padding-inline: .65rem; }}
.ti .muted {{ color: {colors.muted}; }} .ti .good {{ color: {colors.good}; font-weight: 600; }}
.ti .strong {{ font-weight: 600; }}
.ti .critical {{ color: {colors.critical}; font-weight: 600; }}
.ti .major {{ color: {colors.major}; font-weight: 600; }}
.ti .minor {{ color: {colors.minor}; font-weight: 600; }}
.ti .tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem; }}
.ti .tile {{ background: {colors.panel}; border-radius: .5rem; padding: .7rem .9rem; font-size: .82rem; }}
.ti .tile b {{ display: block; font-size: 1.45rem; line-height: 1.35; font-variant-numeric: tabular-nums; }}
.ti .card {{ background: {colors.panel}; border-left: .3rem solid {colors.line}; border-radius: .4rem;
  padding: .9rem 1.1rem; }}
.ti .card.c-critical {{ border-color: {colors.critical}; }}
.ti .card.c-major {{ border-color: {colors.major}; }}
.ti .card.c-minor {{ border-color: {colors.minor}; }}
.ti dl {{ display: grid; grid-template-columns: 6rem minmax(0, 1fr); gap: .3rem 1rem;
  margin: .4rem 0 .2rem !important; padding: 0 !important; }}
.ti dt, .ti dd {{ padding: 0 !important; margin: 0 !important; }}
.ti dt {{ color: {colors.muted}; font-weight: 600; font-size: .9rem; }}
.ti ul {{ margin: 0 !important; padding-left: 1.2rem !important; }}
@media (max-width: 40rem) {{
  .ti dl {{ grid-template-columns: minmax(0, 1fr); gap: 0; }} .ti dd {{ margin-bottom: .5rem !important; }}
  .ti dt:empty {{ display: none; }} .ti .tiles {{ grid-template-columns: repeat(2, minmax(0, 1fr)); }}
}}
</style>"""
