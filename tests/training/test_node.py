"""How a node's run ends: the status, and the last line on the screen."""

import logging
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from torch.distributed import run
from torch.distributed.elastic.multiprocessing import SignalException, errors

from training import __main__ as start
from training import node
from training.launch import STOP_S


@pytest.fixture(autouse=True)
def process_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", raising=False)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ended(monkeypatch: pytest.MonkeyPatch, error: Exception) -> int:
    def fail(_options: object) -> None:
        raise error

    monkeypatch.setattr(run, "run", fail)
    return node.main(["-m", "training"])


def failed(statuses: dict[int, int]) -> errors.ChildFailedError:
    failures = {rank: errors.ProcessFailure(rank, 1, status, "") for rank, status in statuses.items()}
    return errors.ChildFailedError("training", failures)


@pytest.mark.parametrize("known", [2, 3, 4])
def test_what_ranks_have_said_is_not_said_again(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], known: int
) -> None:
    assert ended(monkeypatch, failed({0: -signal.SIGTERM, 1: known})) == known
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        (
            {0: 1, 1: -9},
            "rank 0 ended with status 1; rank 1 was killed by SIGKILL (often: the memory was full)",
        ),
        ({0: -15, 1: -11}, "rank 1 was killed by SIGSEGV"),
        ({1: -15}, "rank 1 was killed by SIGTERM"),
    ],
)
def test_a_failure_names_the_ranks(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    statuses: dict[int, int],
    told: str,
) -> None:
    assert ended(monkeypatch, failed(statuses)) == 1
    assert capfd.readouterr().err == f"error: {told}. What they said stands above\n"


def test_a_stop_ends_as_a_shell_says_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, SignalException("", signal.SIGTERM)) == 143
    assert capfd.readouterr().err == "stopped by SIGTERM\n"


def test_ranks_have_the_time_that_launch_files_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(run, "run", seen.append)
    assert node.main(["--nproc-per-node", "1", "-m", "training"]) == 0
    config, _, _ = run.config_from_args(seen[0])
    assert config.shutdown_timeout == STOP_S


def test_nohup_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(run, "run", seen.append)
    node.main(["-m", "training"])
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    node.main(["-m", "training"])
    handled = [set(options.signals_to_handle.split(",")) for options in seen]
    assert handled == [{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"}, {"SIGTERM", "SIGINT", "SIGQUIT"}]


def test_a_taken_port_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        torchrun = ["--master-addr", "127.0.0.1", "--master-port", port, "-m", "training"]
        assert node.main(torchrun) == 2
    said = capfd.readouterr().err
    assert said == f"error: the port of 127.0.0.1:{port} is in use: choose another (MASTER_PORT)\n"


def test_of_torchruns_log_only_news_pass() -> None:
    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("torch", logging.WARNING, "", 0, text, None, None)

    assert not node._is_news(record("Sending process %s closing signal %s"))
    assert node._is_news(record("Unable to shutdown process %s via %s, forcefully exiting via %s"))


COMPLETE = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_PORT": "1"}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"WORLD_SIZE": None}, "but WORLD_SIZE is not set: start it with torchrun"),
        ({"WORLD_SIZE": "two"}, "but WORLD_SIZE is 'two' and no number"),
        ({"RANK": "-1"}, "but RANK is '-1' and no number"),
        ({"RANK": "2"}, "RANK = 2 is not allowed: it must be below WORLD_SIZE, 2"),
        ({"LOCAL_RANK": None}, "but LOCAL_RANK is not set"),
        ({"MASTER_PORT": None}, "but MASTER_PORT is not set"),
    ],
)
def test_half_the_environment_of_a_rank_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: dict[str, str | None],
    told: str,
) -> None:
    for name, value in (COMPLETE | changed).items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert start.main(["--recipe", "frm_cpu_2rank"]) == 2
    assert told in capsys.readouterr().err
