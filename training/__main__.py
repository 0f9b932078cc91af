"""``python -m training --recipe NAME``: alone it starts all ranks here; under torchrun it is one rank."""

from __future__ import annotations

import argparse
import functools
import logging
import os
import sys
import warnings
from pathlib import Path

from training.config import Config, ConfigError, with_setting
from training.launch import become
from training.recipes import RECIPES, recipe


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 done, 1 a rank failed, 2 wrong configuration."""
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument("--recipe", required=True, help=f"one of {', '.join(RECIPES)}")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="SECTION.FIELD=VALUE")
    parser.add_argument(
        "--traces", type=Path, default=Path("traces"), help="folder of the runs (default: traces)"
    )
    options = parser.parse_args(arguments)
    try:
        config = functools.reduce(with_setting, options.settings, recipe(options.recipe))
        if "RANK" not in os.environ:
            become(config.world_size, arguments)
        _check_world(config)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    _run_rank(config, options.traces / config.name)
    _leave()
    return 0


def _check_world(config: Config) -> None:
    started = int(os.environ["WORLD_SIZE"])
    if started != config.world_size:
        raise ConfigError(
            f"world_size = {config.world_size} is not allowed: {started} processes were started; "
            f"start {config.world_size} or add --set world_size={started}"
        )


def _run_rank(config: Config, folder: Path) -> None:
    # Imported here so that a wrong configuration is reported at once and not after seconds of importing.
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    from training.checkpoint import CheckpointError  # noqa: PLC0415
    from training.loop import train  # noqa: PLC0415

    _quiet_known_warnings()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        losses = train(config, folder)
        if dist.get_rank() == 0:
            change = f"loss {losses[0]:.4f} -> {losses[-1]:.4f}" if losses else "nothing left to do"
            print(f"{config.name}: {len(losses)} steps, {change}, traces in {folder}")
    except CheckpointError as error:  # raised by all ranks alike; one of them says so
        sys.exit(f"error: {error}" if dist.get_rank() == 0 else 1)
    finally:
        dist.destroy_process_group()


def _leave() -> None:
    """End a rank whose work is done without tearing the interpreter down.

    DDP keeps gloo's threads alive beyond destroy_process_group (torch 2.13), and about one exit in twenty
    then aborts with "terminate called without an active exception", which turns a finished run into a failed
    one (pytorch/pytorch#190489).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _quiet_known_warnings() -> None:
    """Silence what TorchRec and PyTorch say about each other's internals.

    Once per rank it hides the run's own lines.
    """
    logging.getLogger("torchrec").setLevel(
        logging.ERROR
    )  # "topology was constructed directly", dry-run estimates
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)  # is_fx_tracing, called by TorchRec
    warnings.filterwarnings(
        "ignore", "HeuristicalStorageReservation", FutureWarning
    )  # TorchRec's own default
    warnings.filterwarnings(
        "ignore", "`broadcast_buffers` is deprecated", FutureWarning
    )  # TorchRec's call of DDP


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
