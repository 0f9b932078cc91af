"""What a user installs: the dashboard is in it, and no name that might be somebody else's."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    code = (
        "import sys; from hatchling.builders.wheel import WheelBuilder\n"
        "print(*WheelBuilder(sys.argv[1]).build(directory=sys.argv[2]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(REPOSITORY), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip().splitlines()[-1])


def test_nothing_but_our_package_stands_at_the_top(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"traceinsight"}
    assert "traceinsight/_dashboard/app.py" in names
    assert "traceinsight/report/templates/report.html.j2" in names
    assert not [name for name in names if "__pycache__" in name]


def test_the_installed_dashboard_draws_a_page(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    code = """
import sys
sys.path[:] = [one for one in sys.path if one != sys.argv[1]]
import traceinsight
assert traceinsight.__file__.startswith(sys.argv[2]), traceinsight.__file__
from traceinsight.cli.dashboard import app_file
from streamlit.testing.v1 import AppTest
path = str(app_file())
assert path.startswith(sys.argv[2]), path
sys.argv = [path, sys.argv[1] + "/sample_traces/late_rank"]
app = AppTest.from_file(path, default_timeout=120).run()
assert not app.exception, app.exception
assert "dashboard" not in sys.modules
print(" ".join(one.proto.body for one in app.get("html")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(REPOSITORY), str(site)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Rank 2 comes late" in done.stdout
