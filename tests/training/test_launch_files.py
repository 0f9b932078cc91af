"""The files for clusters: run for real where a stand-in will do, else held against the schema."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from training.clusters.collect import collect, main
from training.config import with_settings
from training.launch import STOP_S
from training.recipes import RECIPES

REPOSITORY = Path(__file__).resolve().parents[2]
CLUSTERS = REPOSITORY / "training" / "clusters"
SCRIPTS = sorted([*CLUSTERS.glob("*.sh"), *CLUSTERS.glob("*.sbatch")])
SHORT = ["--set", "loop.steps=6", "--set", "loop.wait=1", "--set", "loop.warmup=0", "--set", "loop.active=1"]

FOR_TRACES_S = 10
"""What a cluster leaves beyond the time that ranks have to stop."""


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PET_"))}
    return {**inherited, "PYTHON": sys.executable, "RECIPE": "frm_cpu_2rank", **variables}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_finds_nothing(script: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    command = [str(shellcheck if shellcheck.exists() else shutil.which("shellcheck")), "-x", str(script)]
    found = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


# Names that sbatch documents; a misspelt one makes sbatch refuse the job.
SBATCH_OPTIONS = {"job-name", "nodes", "ntasks-per-node", "gpus-per-node", "exclusive", "time", "output"}
SBATCH_OPTIONS |= {"open-mode", "signal"}


@pytest.mark.parametrize("name", ["slurm.sbatch", "slurm_efa.sbatch"])
def test_the_batch_files_ask_for_what_their_recipe_needs(name: str) -> None:
    text = (CLUSTERS / name).read_text()
    options = dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", text, flags=re.MULTILINE))
    assert options.keys() == SBATCH_OPTIONS
    assert len(re.findall(r"^#SBATCH", text, flags=re.MULTILINE)) == len(options)
    (recipe,) = re.findall(r"RECIPE:-(\w+)", text)
    config = RECIPES[recipe]
    assert int(options["nodes"]) * int(options["gpus-per-node"]) == config.world_size
    assert config.network == ("efa" if "efa" in name else "sockets")
    assert options["signal"] == f"TERM@{STOP_S + FOR_TRACES_S}"


SRUN = """#!/bin/sh
# Stands in for Slurm: the command once per node, all at once, on this machine.
shift  # --kill-on-bad-exit=1
pids=
for node in 0 1; do SLURM_NODEID=$node "$@" & pids="$pids $!"; done
status=0
for pid in $pids; do wait "$pid" || status=$?; done
exit "$status"
"""


@pytest.mark.slow
def test_a_batch_job_on_two_nodes_leaves_the_traces_of_all_ranks(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", '#!/bin/sh\nprintf "127.0.0.1\\nnode1\\n"\n')):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    slurm = {
        "SLURM_SUBMIT_DIR": str(REPOSITORY),
        "SLURM_JOB_NODELIST": "node[0-1]",
        "SLURM_JOB_ID": str(os.getpid()),  # the port is made of it
        "SLURM_NNODES": "2",
        "SLURM_GPUS_ON_NODE": "1",
        "RUNS": str(tmp_path / "runs"),
        "CHECKPOINTS": str(tmp_path / "checkpoints"),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", str(CLUSTERS / "slurm.sbatch"), *SHORT],
        env=environment(**slurm),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "runs" / "frm_cpu_2rank").iterdir()) == [
        "rank0.pt.trace.json.gz",
        "rank1.pt.trace.json.gz",
        "run.json",
    ]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000000006"]


@pytest.mark.slow
def test_a_stopped_node_saves_collects_and_ends(tmp_path: Path) -> None:
    bucket, checkpoints = tmp_path / "bucket", tmp_path / "checkpoints"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    variables = {
        "NPROC_PER_NODE": "2",
        "MASTER_PORT": str(20000 + os.getpid() % 20000),
        "TMPDIR": str(scratch),
    }
    endless = ["--set", "loop.steps=1000000", *SHORT[2:]]
    process = subprocess.Popen(
        [str(CLUSTERS / "run_node.sh"), *endless],
        env=environment(RUNS=f"file://{bucket}", CHECKPOINTS=str(checkpoints), **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 90
        while not list(scratch.glob("**/rank1*.gz")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        process.terminate()
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 143, output  # the launcher is told that the run did not finish
    assert "Traceback" not in output
    assert len(list(checkpoints.glob("step-*"))) == 1, output
    collected = sorted(path.name for path in (bucket / "frm_cpu_2rank").iterdir())
    assert collected == ["rank0.pt.trace.json.gz", "rank1.pt.trace.json.gz", "run.json"]


@pytest.mark.parametrize(
    ("variable", "says"), [("RECIPE", "training/recipes.py"), ("RUNS", "s3://bucket/runs")]
)
def test_a_missing_variable_is_named(variable: str, says: str) -> None:
    variables = environment(RUNS="runs")
    del variables[variable]
    done = subprocess.run(
        [str(CLUSTERS / "run_node.sh")], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert f"{variable}: set {variable}" in done.stderr
    assert says in done.stderr


def test_traces_are_copied_with_their_folders(tmp_path: Path) -> None:
    (tmp_path / "from" / "run").mkdir(parents=True)
    (tmp_path / "from" / "run" / "rank3.gz").write_bytes(b"trace")
    url = f"file://{tmp_path}/to"
    assert collect(tmp_path / "from", url) == [f"{url}/run/rank3.gz"]
    assert (tmp_path / "to" / "run" / "rank3.gz").read_bytes() == b"trace"


def test_traces_that_cannot_be_copied_stay_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rank0.gz").write_bytes(b"trace")
    assert main([str(tmp_path), "nosuch://bucket"]) == 1
    assert f"traces stay in {tmp_path}, nosuch://bucket" in capsys.readouterr().err


def pytorchjob() -> dict[str, Any]:
    return yaml.safe_load((CLUSTERS / "pytorchjob.yaml").read_text())


# Fields of kubeflow.org/v1, by the operator's API: an unknown one is refused or dropped.
REPLICA_FIELDS = {"replicas", "restartPolicy", "template"}
RUN_POLICY_FIELDS = {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"}


def test_the_kubernetes_job_has_the_operators_fields() -> None:
    job = pytorchjob()
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    spec = job["spec"]
    assert spec.keys() == {"nprocPerNode", "runPolicy", "pytorchReplicaSpecs"}
    assert isinstance(spec["nprocPerNode"], str)  # auto, gpu, cpu or a number, hence a string
    assert spec["runPolicy"].keys() <= RUN_POLICY_FIELDS
    assert spec["runPolicy"]["cleanPodPolicy"] in {"None", "Running", "All"}  # the word None, not null
    replicas = spec["pytorchReplicaSpecs"]
    assert replicas.keys() == {"Master", "Worker"}
    for replica in replicas.values():
        assert replica.keys() == REPLICA_FIELDS
        assert replica["restartPolicy"] in {"Always", "OnFailure", "Never", "ExitCode"}
    assert replicas["Master"]["replicas"] == 1


def test_the_kubernetes_job_is_as_large_as_its_recipe_and_mounts_what_it_names() -> None:
    spec = pytorchjob()["spec"]
    replicas = spec["pytorchReplicaSpecs"]
    for replica in replicas.values():
        pod = replica["template"]["spec"]
        (container,) = pod["containers"]
        assert container["name"] == "pytorch"
        assert (REPOSITORY / container["command"][0]).stat().st_mode & 0o111
        variables = {entry["name"]: entry["value"] for entry in container["env"]}
        nodes = sum(part["replicas"] for part in replicas.values())
        assert nodes * int(spec["nprocPerNode"]) == RECIPES[variables["RECIPE"]].world_size
        assert container["resources"]["limits"]["nvidia.com/gpu"] == int(spec["nprocPerNode"])
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
        assert variables["RUNS"].startswith(mounts["shared"])
        assert variables["CHECKPOINTS"].startswith(mounts["shared"])
        assert pod["terminationGracePeriodSeconds"] == STOP_S + FOR_TRACES_S


def test_the_skypilot_task_is_as_large_as_its_recipe() -> None:
    task = yaml.safe_load((CLUSTERS / "skypilot.yaml").read_text())
    assert task.keys() == {
        "name", "workdir", "num_nodes", "resources", "envs", "file_mounts", "setup", "run"
    }  # fmt: skip
    gpus = int(task["resources"]["accelerators"].partition(":")[2])
    assert task["num_nodes"] * gpus == RECIPES[task["envs"]["RECIPE"]].world_size
    assert task["envs"]["BUCKET"] is None  # SkyPilot refuses to start until it is given
    assert task["file_mounts"]["/shared"]["mode"] == "MOUNT"
    assert "RUNS=/shared/" in task["run"]
    syntax = subprocess.run(["bash", "-n"], input=task["run"], capture_output=True, text=True, check=False)
    assert (syntax.returncode, syntax.stderr) == (0, "")


def test_the_settings_that_the_scripts_pass_exist() -> None:
    text = (CLUSTERS / "run_node.sh").read_text()
    names = re.findall(r'--set "([\w.]+)=', text)
    assert names == ["checkpoint.folder"]
    with_settings(RECIPES["frm_4node_8gpu"], [f"{name}=/shared" for name in names])
