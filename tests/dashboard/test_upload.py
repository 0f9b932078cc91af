"""Uploaded files: where they are kept, what is refused, and what is left afterwards (nothing)."""

import gzip
import io
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import JobBuilder
from tests.conftest import REPOSITORY
from tests.dashboard.test_pages import html_of
from tests.report.diagnoses import late_rank
from traceinsight.base.errors import UsageError
from traceinsight.report import FORMATS, ReportOptions

from dashboard import upload  # isort: skip
from dashboard.runs import UPLOAD  # isort: skip
from dashboard.source import fingerprint  # isort: skip
from dashboard.store import Store  # isort: skip
from dashboard.upload import Folder, safe_names  # isort: skip

SAMPLE = REPOSITORY / "sample_traces" / "late_rank"


BOMB = b'{"traceEvents": [' + b" " * (400 * 1024 * 1024)
"""400 MiB of blanks: 400 kB when packed."""


class File(io.BytesIO):
    """What Streamlit gives for an uploaded file."""

    def __init__(self, name: str, content: bytes, file_id: str = "1") -> None:
        super().__init__(content)
        self.name, self.file_id, self.size = name, file_id, len(content)


@pytest.fixture
def folder() -> Any:
    made = Folder()
    yield made
    made.close()


def test_the_folder_is_private_and_gone_when_closed() -> None:
    folder = Folder()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    folder.keep([File("a.json", b"{}")])
    folder.close()
    assert not folder.path.exists()
    folder.close()


def test_the_folder_goes_with_its_session_even_unclosed() -> None:
    folder = Folder()
    path = folder.path
    del folder
    assert not path.exists()


def test_one_file_is_read_as_a_file_and_several_as_a_folder(folder: Folder) -> None:
    assert folder.keep([File("a.json", b"one")]).read_bytes() == b"one"
    path = folder.keep([File("a.json", b"one", "1"), File("b.json", b"two", "2")])
    assert path == folder.path
    assert sorted(one.name for one in path.iterdir()) == ["a.json", "b.json"]


def test_the_same_files_are_written_once_and_others_replace_them(folder: Folder) -> None:
    first = folder.keep([File("a.json", b"one")])
    before = first.stat().st_mtime_ns
    assert folder.keep([File("a.json", b"one")]).stat().st_mtime_ns == before
    folder.keep([File("b.json", b"two", "2")])
    assert [one.name for one in folder.path.iterdir()] == ["b.json"]


def test_names_cannot_leave_the_folder_and_stay_apart() -> None:
    """Equal means equal on file systems that know no capital letters, too."""
    names = ["../../etc/passwd", "..\\x.json", "x.json", "X.json", "..", "", "a\0b\n<script>.json"]
    assert safe_names(names) == [
        "passwd", "x.json", "copy2_x.json", "copy3_X.json", "file", "copy2_file", "a_b_script_.json",
    ]  # fmt: skip
    (long,) = safe_names(["k" * 5000 + "_rank3.json.gz"])
    assert len(long) <= 120
    assert long.endswith("_rank3.json.gz")


def test_too_much_is_refused_before_it_is_written(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "MOST_BYTES", 5)
    with pytest.raises(UsageError, match="6 B were uploaded; at most 5 B"):
        folder.keep([File("a.json", b"abc", "1"), File("b.json", b"def", "2")])
    assert list(folder.path.iterdir()) == []


def test_an_archive_that_claims_too_much_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "MOST_UNPACKED_BYTES", 1_000_000)
    with pytest.raises(UsageError, match=r"says that it unpacks to 3\.00 MB"):
        folder.keep([File("a.zip", zipped({"a.json": b"0" * 3_000_000}))])


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def opened(open_app: Any, *files: tuple[str, bytes], **url: str) -> Any:
    """The dashboard of the sample with these files uploaded."""
    app = open_app(SAMPLE, **url)
    app.file_uploader(key="upload").set_value(
        [(name, content, "application/json") for name, content in files]
    )
    app.run()
    assert [one.value for one in app.exception] == []
    return app


def test_uploaded_traces_are_shown_instead(open_app: Any, tmp_path: Path) -> None:
    job = JobBuilder(world_size=3).build().write(tmp_path / "job")
    files = [(path.name, path.read_bytes()) for path in sorted(job.iterdir()) if "rank" in path.name]
    app = opened(open_app, *files, page="timeline")
    assert "3 of 3 ranks" in html_of(app)
    assert "All ranks on one clock" in [one.value for one in app.subheader]
    app.file_uploader(key="upload").set_value([]).run()
    assert "Rank 2 comes late" in html_of(app)


def test_a_report_of_an_upload_names_files_and_not_where_they_lay(folder: Folder) -> None:
    files = [*sorted(SAMPLE.glob("*.gz")), SAMPLE / "run.json"]
    taken = [File(one.name, one.read_bytes(), one.name) for one in files]
    taken.append(File("notes.json", b'{"a": 1}', "notes"))  # skipped, and named in a note
    found = Store().diagnosis((fingerprint(folder.keep(taken)), None))
    assert found.run.files == [f"rank{rank}.pt.trace.json.gz" for rank in range(4)]
    document = FORMATS["json"].render(found, ReportOptions())
    assert "notes.json" in document
    assert str(folder.path) not in document
    assert "traceinsight-upload" not in document


def test_an_upload_can_be_compared_with_the_runs_of_the_folder(open_app: Any, tmp_path: Path) -> None:
    job = JobBuilder(world_size=4).build().write(tmp_path / "job")
    files = [(path.name, path.read_bytes()) for path in sorted(job.iterdir()) if "rank" in path.name]
    app = opened(open_app, *files, page="compare")
    assert app.selectbox(key="after").value == UPLOAD
    assert app.selectbox(key="after").options == ["your upload", "all of late_rank"]
    assert app.selectbox(key="before").value == ""
    assert "Where the step changed" in [one.value for one in app.subheader]
    assert "traceinsight-upload" not in html_of(app)
    app.file_uploader(key="upload").set_value([]).run()
    assert [one.value for one in app.exception] == []
    assert "There is one run here" in html_of(app)


def test_an_upload_is_offered_as_one_more_size(open_app: Any, tmp_path: Path) -> None:
    job = JobBuilder(world_size=2).build().write(tmp_path / "job")
    files = [(path.name, path.read_bytes()) for path in sorted(job.iterdir()) if "rank" in path.name]
    app = opened(open_app, *files, page="scaling")
    assert app.multiselect(key="sizes").options == ["your upload", "all of late_rank"]
    assert "Choose runs of the same job" in html_of(app)
    app.multiselect(key="sizes").set_value([UPLOAD, ""]).run()
    assert [one.value for one in app.exception] == []
    assert "traceinsight-upload" not in html_of(app)
    assert {"your upload", "."} == set(app.dataframe[0].value["run"])


def test_an_uploaded_report_is_shown(open_app: Any) -> None:
    report = FORMATS["json"].render(late_rank(), ReportOptions()).encode()
    assert "Rank 5 comes late" in html_of(opened(open_app, ("report.json", report)))


def test_an_uploaded_archive_is_read(open_app: Any) -> None:
    members = {path.name: path.read_bytes() for path in SAMPLE.iterdir() if path.is_file()}
    assert "Rank 2 comes late" in html_of(opened(open_app, ("run.zip", zipped(members))))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("notes.json", lambda: b'{"a": 1}'),
        ("empty.json", lambda: b""),
        ("broken.zip", lambda: b"PK\x03\x04 no archive"),
        ("bomb.json.gz", lambda: gzip.compress(BOMB, 6)),
        ("bomb.zip", lambda: zipped({"a.json": BOMB})),
    ],
)
def test_what_is_no_trace_gets_a_message(name: str, make: Callable[[], bytes], open_app: Any) -> None:
    text = html_of(opened(open_app, (name, make())))
    assert "Rank 2 comes late" not in text
    assert name in text.partition("</h1>")[0]
    assert "traceinsight-upload-" not in text


def test_what_was_read_goes_with_the_folder(folder: Folder) -> None:
    path = folder.keep([File("report.json", FORMATS["json"].render(late_rank(), ReportOptions()).encode())])
    store, request = Store(), (fingerprint(path), None)
    store.diagnosis(request)
    store.forget(folder.path.parent / "another")
    assert store.is_known(request)
    store.forget(folder.path)
    assert not store.is_known(request)
