"""A real Chromium opens every page on the 8-rank set, as a visitor would."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.dashboard.conftest import find_chromium
from tests.dashboard.test_pages import PAGES

SIZES = {"desk": (1280, 800), "phone": (390, 844)}
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
OVERFLOWING = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  const wide = document.documentElement.scrollWidth > innerWidth || main.scrollWidth > main.clientWidth;
  const parts = '.ti, h3, [data-testid="stPlotlyChart"], [data-testid="stDataFrame"]';
  const out = [...main.querySelectorAll(parts)]
    .filter(one => one.getBoundingClientRect().right > window.innerWidth + 1)
    .map(one => one.className || one.tagName);
  return wide ? ['page', ...out] : out;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = find_chromium()
    if path is None:
        reason = "no Chromium: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The command itself, on a free port."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    log = (tmp_path_factory.mktemp("server") / "log").open("w+b")
    code = "import sys; from traceinsight.cli import main; sys.exit(main(sys.argv[1:]))"
    call = ["dashboard", str(corpus / "dlrm_v100_8rank"), "--port", str(port), "--no-browser"]
    server = subprocess.Popen(
        [sys.executable, "-c", code, *call],
        cwd=REPOSITORY, stdout=log, stderr=log,
    )  # fmt: skip
    try:
        _wait_for(f"http://localhost:{port}/_stcore/health", server)
        yield f"http://localhost:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()


def _wait_for(url: str, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        assert server.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail("the server did not start")


@pytest.fixture(params=SIZES)
def visit(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    """Opens a page in a window of this size; what the console says is collected in ``.problems``."""
    width, height = SIZES[request.param]
    page = browser.new_page(viewport={"width": width, "height": height})
    page.problems = []
    page.on("console", lambda said: page.problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))

    def go(query: str) -> Any:
        page.goto(f"{address}/?{query}")
        _settled(page)
        return page

    yield go
    page.close()


def _settled(page: Any) -> None:
    page.wait_for_selector(".ti h1", timeout=120_000)
    page.wait_for_function(
        "!document.querySelector('[data-testid=\"stStatusWidget\"]') && "
        "!document.querySelector('[data-stale=\"true\"]')",
        timeout=120_000,
    )


@pytest.mark.parametrize("key", PAGES)
def test_a_page_shows_no_error_and_fits(key: str, visit: Any) -> None:
    page = visit(f"page={key}")
    assert page.locator('[data-testid="stException"]').count() == 0
    assert "come late to the collectives" in page.locator(".ti h1").first.inner_text()
    page.wait_for_timeout(500)  # plotly fits itself to the window after it has drawn
    assert page.evaluate(OVERFLOWING) == []
    assert page.problems == []


def test_the_menu_leads_from_page_to_page(visit: Any) -> None:
    page = visit("page=overview")
    for title, heading in (("Communication", "Share of forward"), ("Ranks", "How long steps take")):
        page.get_by_role("radio", name=title, exact=True).or_(
            page.get_by_role("button", name=title, exact=True)
        ).first.click()
        page.get_by_role("heading", name=heading).wait_for(timeout=60_000)
    assert "page=ranks" in page.url
    assert page.problems == []


def test_the_menu_is_one_line_on_a_desk(visit: Any) -> None:
    page = visit("page=overview")
    page.wait_for_selector('[data-testid="stButtonGroup"]')
    tops = page.evaluate(
        """[...document.querySelectorAll('[data-testid="stButtonGroup"] button')]
        .map(one => Math.round(one.getBoundingClientRect().top))"""
    )
    assert len(tops) == len(PAGES)
    lines = len(set(tops))
    assert lines == 1 if page.viewport_size["width"] > 1000 else lines <= 4


def test_charts_are_drawn(visit: Any) -> None:
    page = visit("page=overview")
    page.wait_for_selector(".js-plotly-plot .bars path", state="attached", timeout=60_000)


def test_dragging_across_the_timeline_shows_less_of_it(visit: Any) -> None:
    page = visit("page=timeline&step=10")
    page.wait_for_selector(".js-plotly-plot .bars path", state="attached", timeout=60_000)
    ticks = "[...document.querySelectorAll('.xtick text')].map(one => one.textContent)"
    before = page.evaluate(ticks)
    page.get_by_role("heading", name="All ranks on one clock").evaluate("one => one.scrollIntoView()")
    box = page.locator(".js-plotly-plot").first.bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 70, steps=6)
    page.mouse.up()
    page.wait_for_function(f"JSON.stringify({ticks}) !== JSON.stringify({before})", timeout=60_000)
    assert page.get_by_role("button", name="Wider").is_enabled()
    assert page.locator('[data-testid="stException"]').count() == 0
    assert page.problems == []


def test_uploaded_files_are_gone_when_the_page_is_closed(browser: Any, address: str, corpus: Path) -> None:
    pattern = "traceinsight-upload-*"
    before = set(Path(tempfile.gettempdir()).glob(pattern))
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector(".ti h1", timeout=120_000)
    page.set_input_files("input[type=file]", sorted((corpus / "dlrm_v100_8rank").glob("*.gz"))[:2])
    page.get_by_text("Rests on 2 of 8 ranks").wait_for(timeout=60_000)
    assert set(Path(tempfile.gettempdir()).glob(pattern)) - before
    page.close()
    for _ in range(100):
        if not set(Path(tempfile.gettempdir()).glob(pattern)) - before:
            return
        time.sleep(0.2)
    pytest.fail("the upload is still there")
