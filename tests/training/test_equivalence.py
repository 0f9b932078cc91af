"""Equivalence of curves: verdicts on both sides of the margin, and what is refused."""

import json
from pathlib import Path

import pytest

from training.equivalence import main
from training.equivalence_curves import Run, cut_short, final_entropy, read_runs, window_of
from training.equivalence_manifest import CurveError
from training.equivalence_tost import compare, compare_pairs, student_cdf, student_quantile

SEEDS = range(3)


def write_run(folder: Path, seed: int | None, entropies: list[float | None], examples: int = 100) -> None:
    """A run.json with windows of ``examples``."""
    folder.mkdir(parents=True)
    windows = [{"examples": examples, "normalized_entropy": entropy} for entropy in entropies]
    config = {} if seed is None else {"config": {"data": {"seed": seed}}}
    (folder / "run.json").write_text(json.dumps({"windows": windows, **config}))


def write_side(folder: Path, ends: list[float], seeds: list[int | None] | None = None) -> Path:
    """One run per value: ten windows, the last two of them (20 %) at that value."""
    for number, end in enumerate(ends):
        seed = number if seeds is None else seeds[number]
        write_run(folder / str(number), seed, [0.99] * 8 + [end, end])
    return folder


# Quantiles of Student's distribution as every table gives them.
@pytest.mark.parametrize(
    ("degrees", "t"),
    [(1, 6.3138), (2, 2.9200), (3, 2.3534), (4, 2.1318), (5, 2.0150), (10, 1.8125), (30, 1.6973)],
)
def test_student_is_the_table(degrees: int, t: float) -> None:
    assert student_cdf(t, degrees) == pytest.approx(0.95, abs=1e-5)
    assert student_cdf(-t, degrees) == pytest.approx(0.05, abs=1e-5)
    assert student_quantile(0.95, degrees) == pytest.approx(t, abs=1e-4)


# Three pairs that differ by 0, 0.0003 and 0.0006 at a base of 1: mean 0.0003, standard deviation 0.0003,
# error 0.0003 / sqrt(3) = 0.0001732; with t(0.95, 2) = 2.92 the interval is 0.0003 +- 0.0005058.
PAIRS = [1.0, 1.0, 1.0], [1.0, 1.0003, 1.0006]


def test_pairs_by_hand() -> None:
    result = compare_pairs(*PAIRS, margin=0.001, confidence=0.95)
    assert (result.difference, result.degrees) == (pytest.approx(0.0003), 2)
    assert (result.low, result.high) == (
        pytest.approx(-0.0002058, abs=1e-7),
        pytest.approx(0.0008058, abs=1e-7),
    )


@pytest.mark.parametrize(("margin", "equivalent"), [(0.000807, True), (0.000805, False)])
def test_the_verdict_turns_where_the_interval_meets_the_margin(margin: float, equivalent: bool) -> None:
    result = compare_pairs(*PAIRS, margin=margin, confidence=0.95)
    assert result.equivalent is equivalent
    assert (result.p_value < 0.05) is equivalent


def test_independent_sides_by_hand() -> None:
    # Means 1 and 1.001; variances 0.0001^2 x {1, 4} over three each: error 0.0001 x sqrt(5 / 3) = 0.0001291.
    # Degrees (5/3)^2 / ((1/3)^2 / 2 + (4/3)^2 / 2) = 2.778 / 0.9444 = 2.94, rounded down 2.
    a, b = [0.9999, 1.0, 1.0001], [1.0008, 1.001, 1.0012]
    result = compare(a, b, margin=0.002, confidence=0.95)
    assert result.degrees == 2
    assert result.high - result.low == pytest.approx(2 * 2.92 * 0.0001291, rel=1e-3)
    assert result.equivalent


def test_only_the_spread_of_the_differences_counts_when_seeds_are_paired() -> None:
    # Seeds differ by 10 %, the change by 0.01 % of a seed: a paired test sees it, an unpaired one cannot.
    a = [0.7, 0.8, 0.9]
    b = [value * 1.0001 for value in a]
    assert compare_pairs(a, b, margin=0.001, confidence=0.95).equivalent
    assert not compare(a, b, margin=0.001, confidence=0.95).equivalent


def test_identical_runs_are_equivalent() -> None:
    assert compare_pairs([0.7, 0.8], [0.7, 0.8], margin=0.001, confidence=0.95).equivalent


@pytest.mark.parametrize(
    ("ends_b", "status", "verdict"),
    [
        ([0.8001, 0.8101, 0.8201], 0, "EQUIVALENT"),  # +0.012 % everywhere
        ([0.8100, 0.8200, 0.8300], 1, "DIFFERENT: the whole interval is outside the margin; B is worse"),
        ([0.7900, 0.8000, 0.8100], 1, "DIFFERENT: the whole interval is outside the margin; B is better"),
        ([0.7900, 0.8100, 0.8300], 1, "NOT SHOWN"),  # the mean is equal, the spread is not
    ],
)
def test_the_verdict_and_its_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ends_b: list[float], status: int, verdict: str
) -> None:
    a, b = write_side(tmp_path / "a", [0.80, 0.81, 0.82]), write_side(tmp_path / "b", ends_b)
    assert main([str(a), str(b)]) == status
    said = capsys.readouterr().out
    assert verdict in said
    assert "paired by seed: 0, 1, 2" in said
    assert "examples 800 to 1,000" in said


def test_the_margin_is_the_users(tmp_path: Path) -> None:
    a = write_side(tmp_path / "a", [0.80, 0.81, 0.82])
    b = write_side(tmp_path / "b", [0.81, 0.82, 0.83])  # +1.2 %
    assert main([str(a), str(b)]) == 1
    assert main([str(a), str(b), "--margin", "0.02"]) == 0


def test_too_few_seeds_decide_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = write_side(tmp_path / "a", [0.8, 0.8]), write_side(tmp_path / "b", [0.8, 0.8])
    assert main([str(a), str(b)]) == 4
    assert "NOT DECIDED: 2 seed(s) on one side, at least 3 are needed" in capsys.readouterr().out


@pytest.mark.parametrize("seeds", [[7, 8, 9], [None] * 3, [0, 0, 1]])
def test_sides_with_other_seeds_are_not_paired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seeds: list[int | None]
) -> None:
    a, b = write_side(tmp_path / "a", [0.8] * 3), write_side(tmp_path / "b", [0.8] * 3, seeds)
    main([str(a), str(b)])
    assert "not paired" in capsys.readouterr().out


def test_the_seeds_that_both_sides_have_are_paired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Seed 9 of B is far off, but A has no such run to say what that seed gives without the change.
    a = write_side(tmp_path / "a", [0.70, 0.80, 0.90])
    b = write_side(tmp_path / "b", [0.70, 0.80, 0.90, 0.50], [0, 1, 2, 9])
    assert main([str(a), str(b)]) == 0
    said = capsys.readouterr().out
    assert "paired by seed: 0, 1, 2; 1 run(s) with a seed of one side only are left out" in said


def test_runs_are_compared_at_the_same_number_of_examples(tmp_path: Path) -> None:
    # B has twice the batch and half the steps; 10 windows of 100 against 6 of 200. Common: 1,000 examples.
    write_run(tmp_path / "a", 0, [0.9] * 8 + [0.8, 0.8])
    write_run(tmp_path / "b", 0, [0.9] * 4 + [0.7, 0.1], examples=200)
    a, b = read_runs(tmp_path / "a")[0], read_runs(tmp_path / "b")[0]
    window = window_of([a, b], 0.2)
    assert window == (800, 1000)
    assert (final_entropy(a, window), final_entropy(b, window)) == (pytest.approx(0.8), 0.7)


def test_a_job_that_records_steps_alone_has_a_curve_too(tmp_path: Path) -> None:
    steps = [{"step": step, "normalized_entropy": 0.5 + step / 10} for step in (3, 4)]  # resumed at step 3
    manifest = {"batch_per_rank": 8, "world_size": 2, "steps": steps}
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    (run,) = read_runs(tmp_path)
    assert run.points == ((64, 16, 0.8), (80, 16, 0.9))


def window(**fields: object) -> str:
    """A run of one window, with ``fields`` in it instead of what is right."""
    return json.dumps({"windows": [{"examples": 100, "normalized_entropy": 0.8, **fields}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not readable as JSON"),
        ("[" * 100_000, "not readable as JSON"),
        ("[]", "Expected `object`, got `array`"),
        ('{"windows": [{"examples": 5}]}', "`normalized_entropy` - at `windows[0]`"),
        ('{"windows": "abc"}', "at `windows`"),
        ('{"windows": [1]}', "at `windows[0]`"),
        (window(normalized_entropy="0.8"), "got `str` - at `windows[0].normalized_entropy`"),
        (window(normalized_entropy=float("inf")), "at `windows[0].normalized_entropy`"),
        (window(normalized_entropy=float("nan")), "at `windows[0].normalized_entropy`"),
        (window(normalized_entropy=-0.5), "Expected `float` > 0.0 - at `windows[0].normalized_entropy`"),
        (window(normalized_entropy=0.0), "Expected `float` > 0.0 - at `windows[0].normalized_entropy`"),
        (window(examples=0), "Expected `int` >= 1 - at `windows[0].examples`"),
        (window(examples=10**400), "at `windows[0].examples`"),
        ('{"config": {"data": {"seed": [1]}}}', "got `array` - at `config.data.seed`"),
        ('{"config": {"data": {"seed": "1"}}}', "got `str` - at `config.data.seed`"),
        ('{"config": {"loop": {"steps": "many"}}}', "got `str` - at `config.loop.steps`"),
        ('{"schema_version": 99}', "Expected `int` <= 1 - at `schema_version`"),
        ('{"batch_per_rank": 8, "world_size": 2, "steps": []}', "it lists no steps"),
        ('{"batch_per_rank": null, "world_size": 2, "steps": []}', "at `batch_per_rank`"),
        (
            '{"batch_per_rank": 8, "world_size": 2, "steps": [{"step": 3, "normalized_entropy": 1},'
            ' {"step": 5, "normalized_entropy": 1}]}',
            "has a gap: steps[1].step is 5 behind 3",
        ),
    ],
)
def test_an_unreadable_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    a = write_side(tmp_path / "a", [0.8] * 3)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "run.json").write_text(text)
    assert main([str(a), str(tmp_path / "b")]) == 3
    said = capsys.readouterr().err
    assert str(tmp_path / "b" / "run.json") in said
    assert message in said


def write_steps(folder: Path, seed: int, windows: int, planned_steps: int, last: float = 0.8) -> None:
    """A run of this project's job: windows of 20 steps of 10 examples, all at 0.8 except the last two."""
    folder.mkdir(parents=True, exist_ok=True)
    entropies = [0.8] * (windows - 2) + [last] * 2
    listed = [
        {"first": 20 * number, "steps": 20, "examples": 200, "normalized_entropy": entropy}
        for number, entropy in enumerate(entropies)
    ]
    config = {"data": {"seed": seed}, "loop": {"steps": planned_steps}}
    (folder / "run.json").write_text(json.dumps({"windows": listed, "config": config}))


def test_a_short_run_does_not_hide_that_the_others_diverge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # B is equal for three windows and far off at the end; its first run died after those three.
    for seed in range(3):
        write_steps(tmp_path / "a" / str(seed), seed, windows=10, planned_steps=200)
        write_steps(tmp_path / "b" / str(seed), seed, windows=10, planned_steps=200, last=0.9)
    (tmp_path / "b" / "0" / "run.json").unlink()
    (tmp_path / "b" / "0").rmdir()
    write_steps(tmp_path / "b" / "0", 0, windows=3, planned_steps=200)
    assert main([str(tmp_path / "a"), str(tmp_path / "b")]) == 4
    short = tmp_path / "b" / "0" / "run.json"
    assert f"NOT DECIDED: {short} ended after 60 of its 200 steps." in capsys.readouterr().out


def test_sides_that_all_ended_early_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in "ab":
        for seed in range(3):
            write_steps(tmp_path / side / str(seed), seed, windows=9, planned_steps=200)
    assert main([str(tmp_path / "a"), str(tmp_path / "b")]) == 4
    assert "ended after 180 of its 200 steps; and 5 more." in capsys.readouterr().out


@pytest.mark.parametrize(("examples", "short"), [(1000, False), (953, False), (952, True), (800, True)])
def test_less_than_one_more_batch_is_no_difference_in_length(examples: int, short: bool) -> None:
    # The other side ended at 1,000. With batches of 48 one more fits in at 952 (952 + 48), not at 953.
    runs = [
        Run(Path("a"), 0, ((1000, 1000, 0.8),), batch=100),
        Run(Path("b"), 0, ((examples, examples, 0.8),), batch=48),
    ]
    assert cut_short(runs) == ([f"b has seen {examples:,} examples, a 1,000"] if short else [])


def test_a_window_that_is_missing_is_a_gap(tmp_path: Path) -> None:
    write_steps(tmp_path, 0, windows=5, planned_steps=100)
    manifest = json.loads((tmp_path / "run.json").read_text())
    del manifest["windows"][2]
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(
        CurveError, match=r"windows\[2\]\.first is 60, and the window before ended with step 39"
    ):
        read_runs(tmp_path)


def test_a_curve_that_lost_its_beginning_counts_from_where_it_begins(tmp_path: Path) -> None:
    write_steps(tmp_path, 0, windows=5, planned_steps=100)
    manifest = json.loads((tmp_path / "run.json").read_text())
    del manifest["windows"][:3]
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    (run,) = read_runs(tmp_path)
    assert [point[0] for point in run.points] == [800, 1000]  # windows of 20 steps of 10 examples
    assert final_entropy(run, (600, 1000)) == pytest.approx(0.8)
    with pytest.raises(CurveError, match="examples 500 to 1,000: its curve begins at 600"):
        final_entropy(run, (500, 1000))


def test_a_run_on_both_sides_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write_side(tmp_path / "a", [0.8] * 3)
    assert main([str(a), str(a / ".." / "a")]) == 4
    assert "A and B are the same runs" in capsys.readouterr().out
    assert main([str(tmp_path), str(a)]) == 4
    assert main([str(a), str(a / "0")]) == 4
    assert f"{a / '0' / 'run.json'} is a run of both sides" in capsys.readouterr().out


def test_a_copy_of_the_same_curves_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = write_side(tmp_path / "a", [0.7, 0.8, 0.9]), write_side(tmp_path / "b", [0.7, 0.8, 0.9])
    assert main([str(a), str(b)]) == 0
    assert "the same curves to the last digit; was the change switched on?" in capsys.readouterr().out


@pytest.mark.parametrize("spread", [1e-9, 0.1, 1 / 3])
def test_two_runs_a_side_of_which_one_has_no_spread_have_a_degree_of_freedom(spread: float) -> None:
    # v^2 / (v^2 / 1) = 1, up to the last digit of the division
    assert compare([0.8, 0.8], [0.8, 0.8 + spread], margin=0.001, confidence=0.95).degrees == 1


def test_help_fits_a_terminal_and_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert max(map(len, said.splitlines())) <= 80
    for taught in ("study/fp32 study/fp8 --final 0.5", "4  NOT DECIDED", "0.7992 to 0.8008"):
        assert taught in said


def test_a_folder_without_runs_and_a_gap_in_the_curve_are_errors(tmp_path: Path) -> None:
    with pytest.raises(CurveError, match=r"holds no run\.json"):
        read_runs(tmp_path)
    write_run(tmp_path / "nan", 0, [0.8, None])
    (run,) = read_runs(tmp_path)
    with pytest.raises(CurveError, match="no normalized entropy at 200 examples: NaN"):
        final_entropy(run, (0, 200))


@pytest.mark.parametrize(
    "option",
    [["--margin", "0"], ["--confidence", "1"], ["--final", "0"], ["--min-seeds", "1"], ["--margin", "x"]],
)
def test_a_wrong_option_is_a_usage_error(tmp_path: Path, option: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path), str(tmp_path), *option])
    assert ended.value.code == 2


def test_the_record_that_a_repeated_run_moved_aside_is_no_further_run(tmp_path: Path) -> None:
    side = write_side(tmp_path / "side", [0.9])
    write_run(side / "0" / ".earlier-1", 0, [0.99] * 10)
    assert [run.path for run in read_runs(side)] == [side / "0" / "run.json"]
