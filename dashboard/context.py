"""What a page gets, and the values it shares with the address bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from traceinsight.api import Loaded, Timeline
from traceinsight.diagnosis import Diagnosis

from .runs import Runs
from .text import page
from .theme import Palette


@dataclass(frozen=True, slots=True)
class Context:
    """One run to show.

    ``traces`` loads what it was made of and ``timeline`` lays it out; both are
    None when only its JSON report was given. ``runs`` are all that lie in the given folder.
    """

    diagnosis: Diagnosis
    colors: Palette
    traces: Callable[[], Loaded] | None
    timeline: Callable[[], Timeline] | None
    runs: Runs


def show(*pieces: str) -> None:
    """Prose made by ``text``."""
    st.html(page(*pieces))


def linked_choice(
    label: str,
    key: str,
    options: Sequence[str],
    *,
    names: Callable[[str], str] = str,
    forgets: tuple[str, ...] = (),
) -> str:
    """A select box whose value stands in the URL, so that the page can be sent to somebody.

    A value in the URL that is none of the options is ignored: it may come from another run. ``forgets`` are
    other keys that mean nothing once this one has changed.
    """
    asked = st.query_params.get(key)
    if st.session_state.get(key) not in options:
        st.session_state[key] = asked if asked in options else options[0]
    chosen: str = st.selectbox(
        label, options, key=key, format_func=names, width=320, on_change=forget, args=(forgets,)
    )
    st.query_params[key] = chosen
    return chosen


def forget(keys: tuple[str, ...]) -> None:
    """Drop values, here and in the URL, that mean nothing any more."""
    for key in keys:
        st.session_state.pop(key, None)
        st.query_params.pop(key, None)
