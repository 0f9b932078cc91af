"""Around every page: which traces, which run, the menu, the verdict, the downloads."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from traceinsight.base.errors import TraceInsightError
from traceinsight.base.units import format_bytes
from traceinsight.diagnosis import Diagnosis
from traceinsight.report import ReportOptions
from traceinsight.report.build import build

from . import downloads
from .context import Context, forget, linked_choice, show
from .runs import Runs
from .source import Root, fingerprint, open_root
from .store import Request, Store, read_report
from .text import escape, headline, name, paragraph
from .theme import css, palette
from .upload import ENDINGS, MOST_BYTES, Folder
from .views import VIEWS


def main(arguments: list[str]) -> None:
    """Draw the page that the URL asks for."""
    st.set_page_config(page_title="traceinsight", layout="wide")
    colors = palette(st.context.theme.type)
    st.html(css(colors))
    try:
        root = open_root(arguments)
        brought = _brought()
        path = root.resolve(_traces(root)) if brought is None else brought
        request, diagnosis = _diagnosis(path)
    except TraceInsightError as error:
        _failed(error)
        return
    is_report = read_report(path) is not None
    heading = st.container()
    view = VIEWS[_menu()]
    with heading:
        _header(diagnosis, large=view.key == "overview")
    context = Context(
        diagnosis,
        colors,
        traces=None if is_report else lambda: _store().loaded(request),
        timeline=None if is_report else lambda: _store().timeline(request),
        runs=Runs(root, _store(), upload=brought),
    )
    view.draw(context)
    downloads.draw(context)


@st.cache_resource
def _store() -> Store:
    return Store()


def _release(folder: Folder) -> None:
    _store().forget(folder.path)
    folder.close()


@st.cache_resource(scope="session", on_release=_release, show_spinner=False)
def _own_folder() -> Folder:
    return Folder()


def _brought() -> Path | None:
    """What this visitor uploaded, in a folder of the session; None: show what the server was started with."""
    with st.sidebar:
        files = st.file_uploader(
            "Or files of your own",
            type=list(ENDINGS),
            accept_multiple_files=True,
            key="upload",
            help=f"Traces of all ranks, a zip archive of them, or one JSON report; at most "
            f"{format_bytes(MOST_BYTES)}. They are removed when you close the page.",
            on_change=forget,
            args=(("traces", "run", "rank", "step", "before", "after", "sizes", "exchange"),),
        )
    return _own_folder().keep(files) if files else None


def _traces(root: Root) -> str:
    """The folder below the root. One that the URL names is checked even when it is not on offer."""
    choices = root.choices()
    asked = st.query_params.get("traces", "")
    if asked and asked not in choices:
        return asked
    if len(choices) == 1:
        return ""
    with st.sidebar:
        return linked_choice(
            "Traces",
            "traces",
            choices,
            names=lambda one: name(one) or f"all of {root.path.name}",
            forgets=("run", "rank", "step"),
        )


def _diagnosis(path: Path) -> tuple[Request, Diagnosis]:
    """Read with a progress bar unless it is known; then offer the other runs that were found."""
    files = fingerprint(path)
    asked = st.query_params.get("run", "")
    request: Request = (files, int(asked) if asked.isdecimal() else None)
    diagnosis = _read(request)
    others = diagnosis.run.other_runs
    if others and read_report(path) is None:
        this = request[1] or len(others) + 1
        runs = sorted({*(str(one.index) for one in others), str(this)}, key=int)
        st.session_state.setdefault("run", str(this))
        with st.sidebar:
            chosen = linked_choice("Run (1 is the oldest)", "run", runs, forgets=("rank", "step"))
        if int(chosen) != this:
            request = (files, int(chosen))
            diagnosis = _read(request)
    return request, diagnosis


def _read(request: Request) -> Diagnosis:
    if _store().is_known(request):
        return _store().diagnosis(request)
    bar = st.progress(0.0, text="Reading traces")

    def update(done: int, total: int, _file: str) -> None:
        bar.progress(done / max(total, 1), text=f"Reading traces: {done} of {total} files")

    try:
        return _store().diagnosis(request, update)
    finally:
        bar.empty()


def _failed(error: TraceInsightError) -> None:
    where = (error.where or "").removeprefix(f"{_own_folder().path}/")
    what = f"{where}: {error.what}" if where else error.what
    show(f"<h1>{escape(what)}</h1>", paragraph(error.what_to_do or ""))


def _header(diagnosis: Diagnosis, *, large: bool) -> None:
    document = build(diagnosis, ReportOptions())
    show(headline(document.verdict, large=large), paragraph(document.basis, "muted"))


def _menu() -> str:
    """The page's key; the URL holds it, so that a link leads to the page."""
    asked = st.query_params.get("page", "")
    if st.session_state.get("page") not in VIEWS:
        st.session_state["page"] = asked if asked in VIEWS else next(iter(VIEWS))
    kept = st.session_state["page"]
    chosen = st.segmented_control(
        "Page",
        list(VIEWS),
        key="page",
        format_func=lambda key: VIEWS[key].title,
        label_visibility="collapsed",
    )
    chosen = chosen or kept  # a second click on the open page deselects it
    st.query_params["page"] = chosen
    return chosen
