"""``traceinsight simulate``: traces of a cluster that need not exist, with the truth beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceinsight.base.errors import UsageError
from traceinsight.cli.messages import print_note
from traceinsight.cli.progress import reading_progress


def simulate(
    spec: Annotated[
        str,
        typer.Argument(metavar="SPEC", help="A TOML file, or the name of a preset.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for the traces.", show_default=False),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=VALUE", help="Override a field, e.g. cluster.nodes=4. Repeat for more.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier simulated run in DIR.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes on stderr.")] = False,
) -> None:  # fmt: skip
    """Simulate training steps of a ranking model on a cluster and write one trace per rank.

    It is a model, and everything it writes says so ("simulated": true).
    truth.json beside the traces holds what really happened in it: windows,
    waits, who was late and by how much.

    [bold]Examples[/bold]

      traceinsight simulate frm_1node_h100 -o simulated/
      traceinsight simulate my_job.toml --set cluster.nodes=4 -o simulated/
      traceinsight analyze simulated/
    """
    from traceinsight.simulate import load_spec, write_run  # noqa: PLC0415 - numpy, not for --help
    from traceinsight.simulate import simulate as run_simulation  # noqa: PLC0415 - likewise

    wanted = load_spec(spec, overrides=dict(_override(text) for text in changes or []))
    with reading_progress(quiet=quiet, what="Writing traces") as progress:
        written = write_run(run_simulation(wanted), output, overwrite=force, progress=progress)
    if not quiet:
        print_note(f"Wrote {len(written)} files to {output} (simulated). Next: traceinsight analyze {output}")


def _override(text: str) -> tuple[str, object]:
    """``cluster.nodes=4`` -> ("cluster.nodes", 4); values read as TOML, else as text."""
    import tomllib  # noqa: PLC0415 - only where something is overridden

    field, equals, value = text.partition("=")
    if not equals or not field.strip():
        raise UsageError(f"--set {text!r} sets nothing.", what_to_do="Write it as --set cluster.nodes=4.")
    try:
        return field.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return field.strip(), value.strip()
