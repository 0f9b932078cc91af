"""``python -m training --recipe NAME``: alone it starts all ranks here; under torchrun it is one rank."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from training import doctor
from training.config import Config, ConfigError, from_toml, list_fields, with_settings
from training.launch import become
from training.network import apply_preset
from training.recipes import list_recipes, recipe
from training.stopping import die_of_interrupt


class Recipes(argparse.Action):
    """Print the recipes and end, as --help does."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> None:
        """End with status 0."""
        print(list_recipes())
        parser.exit()


class Fields(argparse.Action):
    """Print the fields, of one section or of all, and end; with --recipe before it, that recipe's values."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        section: object,
        _option: str | None = None,
    ) -> None:
        """End with status 0, or 2 for a section that does not exist."""
        try:
            config = recipe(namespace.recipe or "frm_cpu_2rank")
            print(f"Values are those of {config.name}.\n\n{list_fields(config, str(section or ''))}")
        except ConfigError as error:
            parser.error(str(error))
        parser.exit()


def main(arguments: list[str]) -> int:
    """Return the exit status.

    0 done, 1 a rank failed, 2 wrong configuration, 3 the loss is not finite, 4 no checkpoint could be loaded.
    A run that was stopped by a signal ends with 128 and the signal's number (SIGTERM: 143).
    """
    die_of_interrupt()
    parser = argparse.ArgumentParser(
        prog="python -m training",
        description=__doc__,
        epilog="Example: python -m training --recipe frm_cpu_2rank --set fault.kind=late_rank "
        "--set fault.rank=1 --set fault.delay_ms=40. More: docs/training.md.",
    )
    parser.add_argument("--recipe", required=True, metavar="NAME", help="the run; --recipes lists them")
    parser.add_argument("--recipes", action=Recipes, nargs=0, help="list the recipes and end")
    parser.add_argument(
        "--fields",
        action=Fields,
        nargs="?",
        metavar="SECTION",
        help="list what can be set (of one section, e.g. fault), with values allowed, and end",
    )
    parser.add_argument(
        "--config", type=Path, help="TOML file with fields to change: a table per section, as in --set"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="SECTION.FIELD=VALUE",
        help="change one field, e.g. model.dim=32 or loop.steps=200; may be repeated; --fields lists them",
    )
    parser.add_argument(
        "--traces", type=Path, default=Path("traces"), help="folder of the runs (default: traces)"
    )
    options = parser.parse_args(arguments)
    try:
        config = recipe(options.recipe)
        if options.config:
            config = from_toml(config, options.config)
        config = with_settings(config, options.settings)
        if "RANK" not in os.environ:
            _check_one_machine(config)
            if absent := doctor.missing():
                print("\n".join(map(doctor.describe, absent)), file=sys.stderr)
                return 1
            become(config, arguments)
        _check_world(config)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    apply_preset(config.network, os.environ)

    speaks = os.environ.get("LOCAL_RANK", "0") == "0"  # once per node: another may have another stack
    if speaks:
        doctor.warn_before_imports()
    # Imported here so that a wrong configuration is reported at once and not after seconds of importing.
    try:
        from training.rank import run_rank  # noqa: PLC0415
    except Exception as error:  # a broken build raises anything
        if speaks:
            doctor.explain_import(error)
        return 1

    return run_rank(config, options.traces / config.name)


def _check_one_machine(config: Config) -> None:
    if config.local_world_size < config.world_size:
        raise ConfigError(
            f"world_size = {config.world_size} needs {config.world_size // config.local_world_size} nodes: "
            f"start it with torchrun --nnodes on each, or add --set world_size={config.local_world_size}"
        )


def _check_world(config: Config) -> None:
    """Raise ConfigError unless the environment is that of one of the run's ranks."""
    _check_set("RANK", "WORLD_SIZE")
    rank, started = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if started != config.world_size:
        raise ConfigError(
            f"world_size = {config.world_size} is not allowed: {started} processes were started; "
            f"start {config.world_size} or add --set world_size={started}"
        )
    if rank >= started:
        raise ConfigError(f"RANK = {rank} is not allowed: it must be below WORLD_SIZE, {started}")
    _check_set("LOCAL_RANK", "MASTER_PORT")


def _check_set(*names: str) -> None:
    for name in names:
        value = os.environ.get(name)
        if value is None or not value.isdecimal():
            found = "is not set" if value is None else f"is {value!r} and no number"
            raise ConfigError(
                f"RANK is set, so this is one rank of a run, but {name} {found}: start it with torchrun, "
                "which sets all that a rank needs, or unset RANK to start all ranks here"
            )


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except BrokenPipeError:  # the reader of a list has seen enough: | head
        os._exit(0)
    # A rank ends without tearing the interpreter down. DDP keeps gloo's threads alive beyond
    # destroy_process_group (torch 2.13), and about one exit in twenty then aborts with "terminate called
    # without an active exception", which turns a finished run into a failed one (pytorch/pytorch#190489).
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
