"""Distillation: metrics against a second implementation, and a student that learns from its teacher."""

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torchrec.optim.keyed import KeyedOptimizerWrapper

from training import distill
from training.checkpoint import Checkpoints, Policy
from training.config import Config, DataConfig, ModelConfig, ReplicaConfig, ShardingConfig, as_dict
from training.data import ClickStream
from training.distill import Distillation, load_teacher, plain_model, predict, serving_config, train_student
from training.distill_metrics import Report, auc, entropy_of, parameters_of

TEACHER = Config(
    name="teacher",
    world_size=4,  # the checkpoint says so; what is read from it is the same for any number
    model=ModelConfig(tables=3, rows=60, dim=16, hidden=(16,)),
    data=DataConfig(batch_per_rank=128, pooling=2),
    replicas=ReplicaConfig(group_size=2),
)
WANTED = Distillation(dim=4, hidden=(8,), steps=120, held_out_batches=20)


def pairs_auc(scores: list[float], labels: list[float]) -> float:
    """Every click against every non-click."""
    clicks = [score for score, label in zip(scores, labels, strict=True) if label]
    others = [score for score, label in zip(scores, labels, strict=True) if not label]
    pairs = [(s > t) + (s == t) / 2 for s in clicks for t in others]
    return sum(pairs) / len(pairs)


def summed_entropy(logits: list[float], labels: list[float]) -> float:
    """Log loss over the entropy of the click rate, term by term."""
    chances = [1 / (1 + math.exp(-logit)) for logit in logits]
    loss = -sum(math.log(p if y else 1 - p) for p, y in zip(chances, labels, strict=True)) / len(labels)
    rate = sum(labels) / len(labels)
    return loss / -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))


@pytest.mark.parametrize("seed", range(5))
def test_auc_is_the_share_of_pairs_in_order(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 12, (80,), generator=generator).float()  # 12 values among 80: many ties
    labels = (torch.rand(80, generator=generator) < 0.3).float()
    assert auc(scores, labels) == pytest.approx(pairs_auc(scores.tolist(), labels.tolist()), abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        ([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 1.0], 1.0),
        ([4.0, 3.0, 2.0, 1.0], [0.0, 0.0, 1.0, 1.0], 0.0),
        ([7.0, 7.0, 7.0, 7.0], [0.0, 1.0, 0.0, 1.0], 0.5),
        ([1.0, 2.0], [1.0, 1.0], None),
    ],
)
def test_auc_at_its_ends(scores: list[float], labels: list[float], expected: float | None) -> None:
    assert auc(torch.tensor(scores), torch.tensor(labels)) == expected


def test_guessing_the_rate_has_entropy_one_and_logits_are_judged_term_by_term() -> None:
    labels = torch.tensor([1.0, 0.0, 0.0, 0.0])
    assert entropy_of(torch.full((4,), math.log(1 / 3)), labels) == pytest.approx(1.0)
    logits = torch.tensor([0.4, -1.0, 2.0, -0.3])
    assert entropy_of(logits, labels) == pytest.approx(summed_entropy(logits.tolist(), labels.tolist()))
    assert entropy_of(logits, torch.ones(4)) is None


@pytest.fixture(scope="module")
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def save_teacher(folder: Path, config: Config) -> tuple[Path, torch.nn.Module]:
    """A trained teacher, saved by what saves training runs."""
    served = serving_config(json.loads(json.dumps(as_dict(config))))
    model = train_student(None, served, served, dataclasses.replace(WANTED, steps=200))
    optimizer = KeyedOptimizerWrapper(
        dict(model.named_parameters()), lambda p: torch.optim.Adagrad(p, lr=0.1)
    )
    state = SimpleNamespace(
        model=model,
        optimizer=optimizer,
        sync_replicas=None,
        metrics=SimpleNamespace(state_dict=dict),
        step=200,
        data_position=200,
    )
    saved = Checkpoints(Policy(folder), about={"config": as_dict(config)}).save(state)
    assert saved is not None
    return saved, model


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, one_rank: None) -> tuple[Path, torch.nn.Module]:
    return save_teacher(tmp_path_factory.mktemp("teacher"), TEACHER)


def test_the_teacher_predicts_what_it_did_when_it_was_saved(teacher: tuple[Path, torch.nn.Module]) -> None:
    loaded, config = load_teacher(teacher[0])
    batch = ClickStream(config, rank=5).batch(0)
    assert torch.equal(predict(loaded, batch), predict(teacher[1], batch))
    assert predict(loaded, batch).std() > 0.1  # and that is not one number


def test_the_student_beats_guessing_and_its_twin_without_a_teacher(
    teacher: tuple[Path, torch.nn.Module],
) -> None:
    guessing, of_teacher, of_student, twin = distill.distill(teacher[0], WANTED)
    # 1 is what guessing gives. Seeded; measured: teacher 0.839, student 0.842, its twin 0.850.
    assert guessing.normalized_entropy == pytest.approx(1, abs=0.01)
    assert of_student.normalized_entropy < 0.9 * guessing.normalized_entropy
    assert of_student.normalized_entropy < twin.normalized_entropy
    assert guessing.auc == 0.5
    assert of_student.auc > 0.7  # measured 0.769
    # 3 tables x 60 rows x 4 values; 13 x 4 + 4 in; 4 vectors give 4 + 6 values: 10 x 8 + 8; 8 + 1 out.
    assert of_student.parameters == 720 + 56 + 88 + 9
    # 3 x 60 x 16; 13 x 16 + 16; 16 + 6 values: 22 x 16 + 16; 16 + 1.
    assert of_teacher.parameters == 2880 + 224 + 368 + 17
    assert of_student.latency_ms > 0


def test_the_reported_numbers_are_those_of_the_held_out_predictions(
    teacher: tuple[Path, torch.nn.Module],
) -> None:
    model, config = load_teacher(teacher[0])
    line = distill.report("teacher", model, config, batches=3)
    stream = ClickStream(config, distill.HELD_OUT_RANK)
    logits = [value for index in range(3) for value in predict(model, stream.batch(index)).tolist()]
    labels = [value for index in range(3) for value in stream.batch(index).labels.tolist()]
    assert line.auc == pytest.approx(pairs_auc(logits, labels), abs=1e-12)
    assert line.normalized_entropy == pytest.approx(summed_entropy(logits, labels), rel=1e-6)
    assert line.parameters == parameters_of(model)


def test_a_student_that_ignores_its_teacher_is_its_twin(teacher: tuple[Path, torch.nn.Module]) -> None:
    model, teacher_config = load_teacher(teacher[0])
    wanted = dataclasses.replace(WANTED, steps=5, teacher_share=0.0)
    config = distill.student_config(teacher_config, wanted)
    ignoring = train_student(model, config, teacher_config, wanted).state_dict()
    twin = train_student(None, config, teacher_config, wanted).state_dict()
    assert all(torch.equal(ignoring[name], twin[name]) for name in twin)
    untrained = plain_model(config).state_dict()
    assert not torch.equal(untrained["dense_part.dense_in.weight"], twin["dense_part.dense_in.weight"])


def test_teacher_and_student_see_the_same_clicks_whatever_the_tables(tmp_path: Path, one_rank: None) -> None:
    config = dataclasses.replace(
        TEACHER,
        model=dataclasses.replace(TEACHER.model, narrow=2),
        sharding=ShardingConfig(partitions=4),
        replicas=ReplicaConfig(),
    )
    saved, _ = save_teacher(tmp_path, config)
    model, teacher_config = load_teacher(saved)
    student = distill.student_config(teacher_config, WANTED)
    ours, theirs = ClickStream(student, 0).batch(3), ClickStream(teacher_config, 0).batch(3)
    assert torch.equal(ours.labels, theirs.labels)
    assert torch.equal(ours.dense, theirs.dense)
    assert predict(model, theirs).shape == ours.labels.shape


def test_the_command_prints_and_writes_the_table(
    teacher: tuple[Path, torch.nn.Module], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distill.main([str(teacher[0]), "--steps", "5", "--json", str(tmp_path / "out.json")]) == 0
    said = capsys.readouterr().out
    rows = json.loads((tmp_path / "out.json").read_text())
    assert [row["name"] for row in rows] == ["click rate", "teacher", "student", "student, labels alone"]
    for row in rows:
        assert f"{row['normalized_entropy']:.4f}" in said


@pytest.mark.parametrize("harm", ["missing", "data", "config", "value", "shape", "contents"])
def test_a_checkpoint_that_cannot_be_used_is_named(
    tmp_path: Path, one_rank: None, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    saved, _ = save_teacher(tmp_path, TEACHER)
    card = saved / "checkpoint.json"
    if harm == "missing":
        card.unlink()
    elif harm == "data":
        (saved / "__0_0.distcp").write_bytes(b"")
    elif harm == "contents":  # what torch calls the file it lists the tensors in
        (saved / ".metadata").write_bytes(b"no pickle")
        edited = json.loads(card.read_text())
        del edited["files"][".metadata"]
        card.write_text(json.dumps(edited))
    else:
        was, now = {
            "config": ('"pooling"', '"polling"'),
            "value": ('"batch_per_rank": 128', '"batch_per_rank": -1'),
            "shape": ('"rows": 60', '"rows": 80'),
        }[harm]
        text = card.read_text()
        assert was in text
        card.write_text(text.replace(was, now))
    says = {
        "missing": "its checkpoint.json cannot be read",
        "data": "it is damaged",
        "config": "another version",
        "value": "another version",
        "shape": "its tensors do not fit its configuration",
        "contents": "its tensors do not fit its configuration",
    }[harm]
    assert distill.main([str(saved)]) == 3
    said = capsys.readouterr().err
    assert f"error: {saved}: " in said
    assert says in said


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--dim", "5"], "no such student can be made: model.dim = 5"),
        (["--hidden", "0"], "argument --hidden: '0' must be whole numbers above 0"),
        (["--hidden", "a"], "argument --hidden: 'a' must be whole numbers above 0"),
        (["--hidden", ""], "argument --hidden: '' must be whole numbers above 0"),
        (["--steps", "0"], "--steps must be at least 1"),
        (["--teacher-share", "1.5"], "--teacher-share between 0 and 1"),
        (["--teacher-share", "nan"], "--teacher-share between 0 and 1"),
    ],
)
def test_a_wrong_option_is_a_usage_error(
    teacher: tuple[Path, torch.nn.Module],
    capsys: pytest.CaptureFixture[str],
    option: list[str],
    says: str,
) -> None:
    with pytest.raises(SystemExit) as ended:
        distill.main([str(teacher[0]), *option])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert says in said
    assert str(teacher[0]) not in said  # it is not the checkpoint's fault


@pytest.mark.parametrize(
    ("target", "says"), [("missing/out.json", "does not exist"), (".", "is a folder; name a file")]
)
def test_where_the_numbers_cannot_go_is_found_before_the_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    says: str,
) -> None:
    monkeypatch.setattr(distill, "distill", pytest.fail)
    with pytest.raises(SystemExit) as ended:
        distill.main([str(tmp_path), "--json", str(tmp_path / target)])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_numbers_that_cannot_be_written_are_still_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = Report("teacher", 0.8, 0.75, 10, 256, 0.5)
    monkeypatch.setattr(distill, "distill", lambda *_: (tmp_path / "out").mkdir() or [line])
    assert distill.main([str(tmp_path), "--json", str(tmp_path / "out")]) == 3
    printed = capsys.readouterr()
    assert "0.7500" in printed.out
    assert f"{tmp_path / 'out'} cannot be written" in printed.err


def test_what_is_no_checkpoint_is_called_by_what_it_is(
    teacher: tuple[Path, torch.nn.Module], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for path, says in {
        tmp_path / "nothing": "this is no checkpoint: there is nothing of that name",
        tmp_path / "file": "this is no checkpoint: it holds no checkpoint.json",
        tmp_path: "this is no checkpoint: it holds no checkpoint.json",
        teacher[
            0
        ].parent: f"this is no checkpoint: that is a folder of checkpoints: name one, such as {teacher[0]}",
    }.items():
        assert distill.main([str(path)]) == 3
        assert f"error: {path}: {says}" in capsys.readouterr().err


def test_help_fits_a_terminal_and_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        distill.main(["--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert max(map(len, said.splitlines())) <= 80
    for taught in ("--dim 4 --hidden 16", "70 % against the teacher", "3  the checkpoint cannot be read"):
        assert taught in said
