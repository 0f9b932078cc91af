"""``python -m training.distill CHECKPOINT``: a small serving student from a large teacher's predictions.

One process on CPU. Prints quality and serving cost of the teacher, the student, and a twin of the student
that saw the labels alone, all measured on clicks that none of them was trained on.
Exit status: 0 done, 2 wrong option, 3 the checkpoint cannot be read or the numbers cannot be written.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException

from training import checkpoint_files as files
from training.config import (
    Config,
    ConfigError,
    DenseConfig,
    EmulationConfig,
    FaultConfig,
    ReplicaConfig,
    ShardingConfig,
)
from training.data import Batch, ClickStream
from training.distill_metrics import Report, auc, entropy_of, median_ms, parameters_of
from training.distill_options import parse
from training.faults import Fault
from training.model import RankingModel

UNUSABLE = 3

HELD_OUT_RANK = 1_000_003
"""A stream of clicks that no rank of a training run has: batches depend on (seed, rank, index)."""


@dataclasses.dataclass(frozen=True)
class Distillation:
    """How the student is made. ``teacher_share`` of its loss is against the teacher, the rest is labels."""

    dim: int
    hidden: tuple[int, ...]
    steps: int
    teacher_share: float = 0.7
    learning_rate: float = 0.05
    held_out_batches: int = 40


def plain_model(config: Config) -> RankingModel:
    """Return the model in one piece, on this process's CPU, with new weights."""
    torch.manual_seed(config.data.seed)
    model = RankingModel(config, Fault())
    for tables in [model.tables, *([model.sequences] if model.has_sequences else [])]:
        tables.to_empty(device="cpu")
        for parameter in tables.parameters():
            # As TorchRec does: so small that an untrained row hardly moves the logit.
            nn.init.uniform_(parameter, -(parameter.shape[0] ** -0.5), parameter.shape[0] ** -0.5)
    return model


def serving_config(saved: dict[str, Any]) -> Config:
    """Return the configuration of a card for one process without a GPU, faults or emulated time.

    Tables keep their shape and partitions. Raises ValueError if the card is of another version of this job.
    """
    parts: dict[str, Any] = {}
    try:
        for field in dataclasses.fields(Config):
            value = saved[field.name]
            if isinstance(value, dict):
                kind = type(getattr(Config(name="any", world_size=1), field.name))
                value = kind(**{name: _hashable(given) for name, given in value.items()})
            parts[field.name] = value
        undivided = ShardingConfig(partitions=parts["sharding"].partitions)
        changes = {"world_size": 1, "ranks_per_node": 0, "device": "cpu", "sharding": undivided}
        changes |= {"replicas": ReplicaConfig(), "dense": DenseConfig(), "fault": FaultConfig()}
        data = dataclasses.replace(parts["data"], pin_memory=False)
        return Config(**parts | changes | {"emulation": EmulationConfig(), "data": data})
    except (KeyError, TypeError, AttributeError, ConfigError) as error:
        raise ValueError(f"its configuration is of another version of this job: {error}") from None


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value  # JSON knows lists alone


def load_teacher(checkpoint: Path) -> tuple[RankingModel, Config]:
    """Return the teacher of a checkpoint of any number of ranks; raises ValueError saying what is wrong."""
    if other := files.not_one(checkpoint):
        raise ValueError(f"this is no checkpoint: {other}")
    card = files.read_card(checkpoint)
    if wrong := files.damage(checkpoint, card["files"]):
        raise ValueError(f"it is damaged: {wrong}")
    if "config" not in card:
        raise ValueError("its card holds no configuration: it was not saved by this job")
    config = serving_config(card["config"])
    model = plain_model(config)
    state = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # one process, as meant
        try:
            dcp.load(state, storage_reader=dcp.FileSystemReader(checkpoint), no_dist=True)
        except CheckpointException as error:
            failure, _ = error.failures[0]  # the exception's own text is whole tracebacks
            raise ValueError(f"its tensors do not fit its configuration: {failure}") from None
    return model.eval(), config


def student_config(teacher: Config, wanted: Distillation) -> Config:
    """Return the teacher's job with narrower tables and layers; raises ConfigError for impossible ones."""
    model = dataclasses.replace(teacher.model, dim=wanted.dim, narrow=1, hidden=wanted.hidden)
    # The same clicks, also where the teacher has rows that the student has not.
    data = dataclasses.replace(teacher.data, vocabulary=teacher.vocabulary)
    return dataclasses.replace(teacher, model=model, data=data, sharding=ShardingConfig())


def train_student(
    teacher: nn.Module | None, config: Config, teacher_config: Config, wanted: Distillation
) -> RankingModel:
    """Train a student; without a teacher on labels alone, with the same clicks in the same order."""
    student = plain_model(config).train()
    optimizer = torch.optim.Adagrad(student.parameters(), lr=wanted.learning_rate)
    clicks, as_taught = ClickStream(config, rank=0), ClickStream(teacher_config, rank=0)
    for step in range(wanted.steps):
        batch = clicks.batch(step)
        if teacher is not None:
            soft = torch.sigmoid(predict(teacher, as_taught.batch(step)))
            # Cross entropy is linear in its target: against a mixture it is the mixture of both losses.
            mixed = torch.lerp(batch.labels, soft, wanted.teacher_share)
            batch = dataclasses.replace(batch, labels=mixed)
        optimizer.zero_grad()
        loss, _ = student(batch)
        loss.backward()
        optimizer.step()
    return student.eval()


def predict(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Return the logits [B] without gradients."""
    with torch.no_grad():
        logits: torch.Tensor = model(batch)[1].logits
    return logits


def report(name: str, model: nn.Module, config: Config, batches: int) -> Report:
    """Measure a model on held-out clicks and time it."""
    stream = ClickStream(config, HELD_OUT_RANK)
    held_out = [stream.batch(index) for index in range(batches)]
    logits = torch.cat([predict(model, batch) for batch in held_out])
    labels = torch.cat([batch.labels for batch in held_out])
    return Report(
        name=name,
        normalized_entropy=entropy_of(logits, labels),
        auc=auc(logits, labels),
        parameters=parameters_of(model),
        batch=config.data.batch_per_rank,
        latency_ms=median_ms(lambda: predict(model, held_out[0])),
    )


def constant(config: Config, wanted: Distillation) -> Report:
    """Return the line of guessing the click rate of the student's training clicks."""
    seen, held_out = ClickStream(config, 0), ClickStream(config, HELD_OUT_RANK)
    rate = torch.cat([seen.batch(step).labels for step in range(wanted.steps)]).mean()
    labels = torch.cat([held_out.batch(index).labels for index in range(wanted.held_out_batches)])
    logits = torch.logit(rate).expand_as(labels)
    size = config.data.batch_per_rank
    return Report("click rate", entropy_of(logits, labels), auc(logits, labels), 1, size, None)


def distill(checkpoint: Path, wanted: Distillation) -> list[Report]:
    """Return the lines of guessing, teacher, student, and the student's twin that saw labels alone."""
    teacher, teacher_config = load_teacher(checkpoint)
    config = student_config(teacher_config, wanted)
    batches = wanted.held_out_batches
    student = train_student(teacher, config, teacher_config, wanted)
    twin = train_student(None, config, teacher_config, wanted)
    return [
        constant(config, wanted),
        report("teacher", teacher, teacher_config, batches),
        report("student", student, config, batches),
        report("student, labels alone", twin, config, batches),
    ]


def table(reports: list[Report]) -> str:
    """Return the lines side by side."""

    def shown(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    head = f"{'model':22}{'norm. entropy':>15}{'AUC':>9}{'parameters':>13}{'ms per batch':>14}"
    rows = [
        f"{row.name:22}{shown(row.normalized_entropy, 4):>15}{shown(row.auc, 4):>9}{row.parameters:>13,}"
        f"{shown(row.latency_ms, 2):>14}"
        for row in reports
    ]
    return "\n".join([head, *rows, f"latency: median, batches of {reports[0].batch}, one CPU thread"])


def main(arguments: list[str] | None = None) -> int:
    """Distill and print; return the exit status."""
    parser, options = parse(arguments)
    torch.set_num_threads(1)
    wanted = Distillation(options.dim, options.hidden, options.steps, options.teacher_share)
    try:
        reports = distill(options.checkpoint, wanted)
    except ConfigError as error:
        parser.error(f"no such student can be made: {error}")
    except ValueError as error:
        print(f"error: {options.checkpoint}: {error}", file=sys.stderr)
        return UNUSABLE
    print(table(reports))
    if options.json:
        text = json.dumps([dataclasses.asdict(row) for row in reports], indent=1)
        try:
            options.json.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            print(f"error: {options.json} cannot be written: {error.strerror}", file=sys.stderr)
            return UNUSABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
