"""``traceinsight dashboard``: the diagnosis in a browser."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from traceinsight.base.errors import UsageError
from traceinsight.cli.messages import print_note

LOCAL = "localhost"
_NEEDED = ("streamlit", "plotly")


def dashboard(
    traces: Annotated[
        Path,
        typer.Argument(
            metavar="TRACES",
            help="A folder of traces, a trace file, or what analyze --format json wrote. Nothing outside it "
            "can be opened.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on. Others than localhost let other people in.")
    ] = LOCAL,
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8501,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    r"""Look at a run in a browser, until Ctrl-C.

    Needs the extra: pip install '.\[dashboard]' in a clone.

    [bold]Examples[/bold]

      traceinsight dashboard traces/
      traceinsight dashboard report.json --port 8600 --no-browser
    """
    if not traces.exists():
        raise UsageError("there is no such file or folder.", where=str(traces))
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the dashboard needs {' and '.join(missing)}, not installed here.",
            what_to_do=(
                "Install the extra: pip install '.[dashboard]' in a clone, or pip install "
                "'traceinsight-recsys[dashboard] @ file:///PATH/TO/THE.whl'."
            ),
        )
    if host != LOCAL:
        print_note(f"Everybody who reaches {host}:{port} can see these traces; there is no password.")
    _become(_call(traces, host, port, no_browser=no_browser))


def _become(call: list[str]) -> None:
    """Run the server in place of this process, so that whatever stops the command stops the server."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execv(call[0], call)
    raise typer.Exit(subprocess.run(call, check=False).returncode)


def _call(traces: Path, host: str, port: int, *, no_browser: bool) -> list[str]:
    settings = {
        "server.address": host,
        "server.port": str(port),
        "server.headless": str(no_browser).lower(),
        "server.showEmailPrompt": "false",  # Streamlit's question at the first start of a user
        "server.fileWatcherType": "none",
        "server.maxUploadSize": "500",  # MB; the page takes no more than that in all
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "viewer",
        # Streamlit's own accent is the red that means "critical" here.
        "theme.light.primaryColor": "#005a8c",
        "theme.dark.primaryColor": "#7cc4f0",
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [sys.executable, "-m", "streamlit", "run", str(app_file()), *options, "--", str(traces)]


def app_file() -> Path:
    """The dashboard beside this code: inside the package when installed, at the top of a clone.

    Raises:
        UsageError: It is in neither place.

    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_dashboard", package.parent / "dashboard"):
        if (folder / "app.py").is_file():
            return folder / "app.py"
    raise UsageError(
        "this installation has no dashboard.", what_to_do="Install from a wheel or run from a clone."
    )
