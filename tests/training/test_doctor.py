"""The doctor on faked machines: each mismatch is found, named with its cure, and nothing else is."""

import dataclasses
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.training.running import REPOSITORY
from training import doctor
from training.doctor import describe, known_good
from training.doctor_checks import PROBLEM, UNKNOWN, WARNING, Finding, check, numbers
from training.doctor_facts import Facts, collect, metadata, plugin_version

CPU = Facts(python="3.11", installed={"torch": "2.13.0+cpu", "torchrec": "1.8.0", "fbgemm-gpu-cpu": "1.8.0"})
GPU = Facts(
    python="3.12",
    installed={
        "torch": "2.10.0",
        "torchrec": "1.5.0",
        "fbgemm-gpu": "1.5.0",
        "triton": "3.6.0",
        "nvidia-nccl-cu12": "2.28.9",
    },
    torch_requires=(
        "filelock",
        'triton==3.6.0; platform_system == "Linux"',
        'nvidia-nccl-cu12==2.28.9; platform_system == "Linux"',
        'triton==9.9.9; extra == "experiments"',
    ),
    cuda="12.8",
    gpus=8,
    driver="570.86.15",
    nccl="2.28.9",
)
EFA = dataclasses.replace(
    GPU,
    efa_devices=32,
    plugin_path="/opt/amazon/ofi-nccl/lib/libnccl-net.so",
    plugin="1.20.0",
    libfabric="2.4",
)


def bad(facts: Facts) -> list[Finding]:
    return [finding for finding in check(facts, known_good()) if finding.level in (PROBLEM, WARNING)]


def with_installed(facts: Facts, **changed: str | None) -> Facts:
    installed = {**facts.installed, **{name.replace("_", "-"): version for name, version in changed.items()}}
    return dataclasses.replace(
        facts, installed={name: version for name, version in installed.items() if version is not None}
    )


@pytest.mark.parametrize("facts", [CPU, GPU, EFA], ids=["cpu", "gpu", "efa"])
def test_a_stack_that_fits_has_neither_problem_nor_warning(facts: Facts) -> None:
    assert bad(facts) == []


@pytest.mark.parametrize(
    ("facts", "level", "what", "change"),
    [
        (
            with_installed(GPU, torchrec="1.4.0"),
            PROBLEM,
            "do not belong together",
            "torchrec 1.5.*, fbgemm 1.5.*",
        ),
        (
            with_installed(GPU, fbgemm_gpu="1.4.0"),
            PROBLEM,
            "do not belong together",
            "for torch 2.10 install",
        ),
        (with_installed(GPU, fbgemm_gpu_cpu="1.5.0"), PROBLEM, "both installed", "uninstall both"),
        (
            with_installed(GPU, fbgemm_gpu=None, fbgemm_gpu_cpu="1.5.0"),
            PROBLEM,
            "torch is a CUDA 12.8 build, FBGEMM a CPU build",
            "replace fbgemm-gpu-cpu by fbgemm-gpu",
        ),
        (
            with_installed(CPU, fbgemm_gpu_cpu=None, fbgemm_gpu="1.8.0"),
            PROBLEM,
            "torch is a CPU build, FBGEMM a CUDA build",
            "replace fbgemm-gpu by fbgemm-gpu-cpu",
        ),
        (with_installed(GPU, triton="3.5.0"), PROBLEM, "torch wants triton 3.6.0, 3.5.0 is", "triton==3.6.0"),
        (with_installed(GPU, triton=None), WARNING, "torch wants triton 3.6.0, none", "triton==3.6.0"),
        (
            dataclasses.replace(with_installed(GPU, nvidia_nccl_cu12="2.27.3"), nccl="2.27.3"),
            PROBLEM,
            "torch wants nvidia-nccl-cu12 2.28.9, 2.27.3 is installed",
            "nvidia-nccl-cu12==2.28.9",
        ),
        (dataclasses.replace(GPU, nccl="2.18.1"), PROBLEM, "torch loads NCCL 2.18.1", "LD_LIBRARY_PATH"),
        (dataclasses.replace(GPU, cuda="11.8"), PROBLEM, "built for CUDA 11.8", "12.6, 12.8, 12.9 or 13.0"),
        (dataclasses.replace(GPU, python="3.8"), WARNING, "Python 3.8", "3.10, 3.11, 3.12, 3.13 or 3.14"),
        (dataclasses.replace(GPU, gpus=0, nccl=None), PROBLEM, "finds no GPU with driver 570", "nvidia-smi"),
        (dataclasses.replace(CPU, driver="570.1"), WARNING, "torch is a CPU build", "CUDA build of torch"),
        (with_installed(CPU, torchrec=None), PROBLEM, "not installed: torchrec", "CONTRIBUTING.md"),
        (
            with_installed(CPU, torch="2.99.0", torchrec="7.1.0"),
            PROBLEM,
            "matching version numbers only",
            "same minor version",
        ),
        (
            dataclasses.replace(EFA, plugin_path=None, plugin=None),
            PROBLEM,
            "32 EFA devices, but no aws-ofi-nccl",
            "LD_LIBRARY_PATH",
        ),
        (
            dataclasses.replace(EFA, libfabric="1.10"),
            PROBLEM,
            "aws-ofi-nccl 1.20.0 needs libfabric 1.11.0 or newer, 1.10 is there",
            "upgrade libfabric",
        ),
        (
            dataclasses.replace(CPU, import_errors={"fbgemm_gpu": "OSError: undefined symbol"}),
            PROBLEM,
            "fbgemm_gpu cannot be imported (OSError: undefined symbol)",
            "--force-reinstall --no-deps fbgemm-gpu-cpu==1.8.0 torchrec==1.8.0",
        ),
        (
            dataclasses.replace(
                CPU, import_errors={"torchrec": "ModuleNotFoundError: No module named 'a.b'"}
            ),
            PROBLEM,
            "torchrec cannot be imported",
            "install what a belongs to",
        ),
        (
            dataclasses.replace(
                with_installed(CPU, torchrec=None),
                import_errors={"torchrec": "ModuleNotFoundError: No module named 'torchrec'"},
            ),
            PROBLEM,
            "torchrec cannot be imported",
            "install it as CONTRIBUTING.md says",
        ),
    ],
)
def test_each_mismatch_is_the_one_thing_found(facts: Facts, level: str, what: str, change: str) -> None:
    (finding,) = bad(facts)
    assert finding.level == level
    assert what in finding.what
    assert change in finding.change


def test_a_failed_import_points_at_findings_only_where_there_are_some() -> None:
    broken = dataclasses.replace(
        with_installed(GPU, torchrec="1.4.0"), import_errors={"torchrec": "ImportError"}
    )
    first, second = bad(broken)
    assert "mend the problems named below first" in first.change
    assert "do not belong together" in second.what


def test_no_line_is_wider_than_the_terminal_and_no_command_is_cut() -> None:
    broken = dataclasses.replace(CPU, import_errors={"torchrec": "ImportError: undefined symbol: _Z3c10"})
    for columns in (80, 120):
        lines = [line for one in check(broken, known_good()) for line in describe(one, columns).splitlines()]
        assert max(map(len, lines)) <= columns
    assert any("fbgemm-gpu-cpu==1.8.0" in line for line in lines)


def test_metadata_tells_what_the_imports_tell() -> None:
    light, full = metadata(), collect()
    assert light.gpus is None  # nobody looked, which is no finding
    assert dataclasses.replace(light, gpus=full.gpus, nccl=full.nccl) == full


def one_rank(tmp_path: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-m", "training", "--recipe", "frm_cpu_2rank", "--traces", str(tmp_path)],
        cwd=REPOSITORY, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_run_with_a_broken_stack_ends_in_the_doctors_advice(tmp_path: Path) -> None:
    (tmp_path / "torchrec.py").write_text("raise ImportError('undefined symbol: _ZN3c10')")
    place = {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "1",
    }
    found = one_rank(tmp_path, PYTHONPATH=f"{tmp_path}:{REPOSITORY}", **place)
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert "torchrec cannot be imported (ImportError: undefined symbol: _ZN3c10)" in found.stderr
    assert "--force-reinstall" in found.stderr


def test_a_run_without_torch_says_so_before_any_process_starts(tmp_path: Path) -> None:
    found = one_rank(tmp_path, "-S", PYTHONPATH=str(REPOSITORY))  # -S: no site-packages
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert "torch cannot be imported" in found.stderr
    assert "CONTRIBUTING.md" in found.stderr


def test_what_was_said_before_the_imports_is_not_said_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = with_installed(CPU, torchrec="1.7.0")
    monkeypatch.setattr(doctor, "_said", set())
    monkeypatch.setattr(doctor, "metadata", lambda: dataclasses.replace(old, gpus=None))
    monkeypatch.setattr(doctor, "collect", lambda: old)
    doctor.warn_before_imports()
    assert "do not belong together" in capsys.readouterr().err
    doctor.warn()
    assert capsys.readouterr().err == ""


def test_help_explains_and_checks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        doctor.main(["--help"])
    assert ended.value.code == 0
    assert "Exit status" in capsys.readouterr().out


def test_the_plugin_needs_nccl_2_17_1() -> None:
    old = dataclasses.replace(with_installed(EFA, nvidia_nccl_cu12=None), nccl="2.16.5", torch_requires=())
    (finding,) = bad(old)
    assert "aws-ofi-nccl 1.20.0 needs nccl 2.17.1 or newer, 2.16.5 is there" in finding.what


def levels(facts: Facts) -> dict[str, str]:
    return {finding.what: finding.level for finding in check(facts, known_good())}


def test_what_is_in_no_table_is_unknown_and_not_wrong() -> None:
    new = with_installed(CPU, torch="2.99.0", torchrec="7.1.0", fbgemm_gpu_cpu="7.1.0")
    assert bad(new) == []
    assert any(level == UNKNOWN and "in no known-good set" in what for what, level in levels(new).items())
    future = dataclasses.replace(EFA, plugin=None)
    assert any(level == UNKNOWN and "version unknown" in what for what, level in levels(future).items())


def test_an_unlisted_plugin_release_is_judged_by_the_next_older_one() -> None:
    # 1.30 is newer than all rows: 1.21's. 1.10 lies between 1.9 and 1.19: 1.9's, which wants libfabric 1.18.
    assert any("1.21 was tested with" in what for what in levels(dataclasses.replace(EFA, plugin="1.30.1")))
    between = dataclasses.replace(EFA, plugin="1.10.0", libfabric="1.17")
    assert any("needs libfabric 1.18.0" in finding.what for finding in bad(between))


def test_problems_come_first() -> None:
    found = [
        finding.level for finding in check(with_installed(GPU, torchrec="1.4.0", triton=None), known_good())
    ]
    assert found[:2] == [PROBLEM, WARNING]


@pytest.mark.parametrize(
    ("version", "expected"), [("2.13.0+cpu", (2, 13, 0)), ("1.5", (1, 5)), ("unknown", ())]
)
def test_numbers_of_a_version(version: str, expected: tuple[int, ...]) -> None:
    assert numbers(version) == expected


def test_the_plugins_version_is_read_from_its_library() -> None:
    assert plugin_version(b"\x00NET/OFI Initializing aws-ofi-nccl 1.20.0\x00") == "1.20.0"
    assert plugin_version(b"\x7fELF another plugin") is None


def test_this_machine_is_described_truly() -> None:
    facts = collect()
    assert facts.installed["torch"] == importlib.metadata.version("torch")
    assert facts.import_errors == {}
    assert bad(dataclasses.replace(facts, driver=None)) == []  # the stack that the project installs fits


def test_the_command_prints_the_cure_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_said", set())
    monkeypatch.setattr(doctor, "collect", lambda: with_installed(GPU, triton="3.5.0"))
    assert doctor.main() == 1
    said = capsys.readouterr().out
    assert "-> pip install triton==3.6.0" in said
    assert "1 problem(s)" in said
    doctor.warn()
    warned = capsys.readouterr().err
    assert "training.doctor:\nproblem  torch wants triton 3.6.0" in warned
    assert "belong together" not in warned  # what fits needs no line at every start


def test_the_table_is_complete_and_newest_first() -> None:
    table: dict[str, Any] = known_good()
    for kind, name in (("set", "torch"), ("plugin", "version")):
        versions = [numbers(row[name]) for row in table[kind]]
        assert versions == sorted(versions, reverse=True)
        assert len(set(versions)) == len(versions)
    assert all(row["source"] and row["python"] for row in table["set"])
