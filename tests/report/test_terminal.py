"""The terminal report: what a person sees, at any width, with and without colour."""

import re
from collections.abc import Callable

import pytest
from msgspec import structs
from rich.cells import cell_len

from tests.report.diagnoses import (
    CASES,
    MS,
    gloo_without_gpu,
    late_rank,
    many_ranks,
    nothing_measured,
    single_rank,
)
from traceinsight.diagnosis import NotJudged, PhaseRow, Replay
from traceinsight.report import FORMATS, ReportOptions

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def render(case: str, **options: object) -> str:
    return FORMATS["terminal"].render(CASES[case](), ReportOptions(**options))  # type: ignore[arg-type]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("case", CASES)
def test_golden_at_80_columns(case: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{case}_80.txt", render(case, width=80))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_wider_than_the_screen(case: str, width: int) -> None:
    for color in (False, True):
        lines = ESCAPE.sub("", render(case, width=width, color=color)).splitlines()
        assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("width", [60, 80, 200])
def test_numbers_are_whole_at_every_width(width: int) -> None:
    text = render("late_rank", width=width)
    # Cells of the tables: step window, wait, bandwidth, kernel share, clock offset.
    for number in ("200 ms", "37.5%", "24.1 GB/s", "70.0%", "-300 ns"):
        assert number in text, number
    assert "…" not in text


def test_without_colour_there_is_no_escape_sequence() -> None:
    assert "\x1b" not in render("late_rank", color=False)


def test_with_colour_the_text_is_the_same() -> None:
    colored = render("late_rank", color=True)
    assert ESCAPE.search(colored)
    lines = [line.rstrip() for line in ESCAPE.sub("", colored).splitlines()]
    assert "\n".join(lines) + "\n" == render("late_rank", color=False)


def test_the_verdict_is_the_first_line_and_what_to_change_comes_before_the_evidence() -> None:
    text = render("late_rank")
    assert text.startswith("Rank 5 comes late to the collectives: the other ranks wait 15% of the step")
    places = [text.index(title) for title in (
        "What to change next", "Where the GPU time went", "Communication by kind",
        "Communication share of forward", "Stragglers", "Kernel families", "Not judged", "Data quality",
        "Clocks", "The run",
    )]  # fmt: skip
    assert places == sorted(places)


def test_findings_come_in_the_order_of_the_roadmap() -> None:
    # The factory lists the exchange first, its roadmap the straggler.
    text = render("late_rank")
    assert text.index("1. Rank 5 comes late") < text.index("2. The embedding exchange")


def test_replayed_gains_too_small_for_a_roadmap_are_said_to_be_small() -> None:
    run = late_rank()
    (first, *others) = run.findings
    assert first.gain is not None
    small = structs.replace(first, gain=structs.replace(first.gain, kind="replayed"))
    replay = Replay(residual_share=0.001, worst_step=0.002, predicted=True, reason=None)
    text = flat(
        FORMATS["terminal"].render(
            structs.replace(run, findings=[small, *others], replay=replay), ReportOptions()
        )
    )
    assert "No remedy saves enough when replayed to plan with" in text
    ceilings = structs.replace(run, replay=replay)
    assert "No remedy saves enough" not in flat(FORMATS["terminal"].render(ceilings, ReportOptions()))


def test_a_ceiling_is_called_one_and_gains_are_not_added() -> None:
    text = flat(render("late_rank"))
    # 30 of 200 ms: 15 %; 200 / 170 = 1.18.
    assert "at most 30.0 ms of the 200 ms step (15.0% of it), so 1.18x as fast at best (ceiling)" in text
    assert "ceiling; 8.00 ms to 14.0 ms over ranks" in text
    assert "do not add up" in text
    assert "40.0 ms of the 200 ms" not in text  # 30 + 10


def test_what_was_not_measured_is_not_zero() -> None:
    gloo = flat(FORMATS["terminal"].render(gloo_without_gpu(), ReportOptions()))
    assert "45.0 ms 40.0 ms 20.0% 10.0 ms 30.0 ms 0 ns n/a n/a" in gloo
    assert "Not measured: no collective ties the ranks' clocks together." in gloo
    nothing = flat(FORMATS["terminal"].render(nothing_measured(), ReportOptions()))
    assert "Not measured: no device activity inside a step was recorded." in nothing
    assert "Not measured: no forward pass" in nothing
    assert "0%" not in nothing
    assert "0 ns" not in nothing


def test_no_straggler_is_told_apart_from_not_judged() -> None:
    healthy = render("healthy")
    assert "None established" in healthy
    alone = flat(FORMATS["terminal"].render(single_rank(), ReportOptions()))
    assert "Stragglers" in alone
    assert "None established" not in alone
    assert "Not judged: 127 of 128 ranks were not captured" in alone


def test_a_healthy_run_says_that_nothing_is_to_be_changed() -> None:
    text = render("healthy")
    assert text.startswith("Healthy:")
    assert "Nothing: no rule found a bottleneck in these steps." in text


def test_missing_ranks_and_five_hundred_notes_take_a_line_each() -> None:
    text = flat(FORMATS["terminal"].render(single_rank(), ReportOptions()))
    assert "1-127 (127 not captured)" in text
    # 500 notes of 3 lost kernels each.
    assert "1,500 in all, in 500 notes" in text
    assert text.count("lost-kernels") == 1
    assert text.index("truncated-file") < text.index("lost-kernels")  # errors first


def test_dropped_steps_and_other_runs_are_named() -> None:
    text = flat(render("late_rank"))
    assert "step 9: first captured step, 2.4x the median" in text
    assert "steps 13, 14: longer than 2x the median" in text
    assert "--run 1 analyses it" in flat(render("gloo_without_gpu"))


def test_many_ranks_are_summarised_and_the_late_one_is_among_those_shown() -> None:
    text = render("many_ranks")
    assert len(text.splitlines()) < 200
    rows = {line.split("  ")[0] for line in text.splitlines()}
    assert {"median", "least", "most", "77 late", "200"} <= rows
    assert "13" not in rows  # like the median in every way
    # Compute is 50 % everywhere; wait is 0 on rank 77, 70 of 200 ms on rank 200.
    assert re.search(r"^least .* 0%  1\.0%", text.replace("      ", " "), re.MULTILINE)


def test_all_ranks_shows_all_ranks() -> None:
    text = FORMATS["terminal"].render(many_ranks(), ReportOptions(all_ranks=True))
    assert re.search(r"^13 ", text, re.MULTILINE)
    assert not re.search(r"^median ", text, re.MULTILINE)


@pytest.mark.parametrize(("count", "summarised"), [(23, False), (24, True)])
def test_summaries_begin_at_24_ranks(count: int, summarised: bool) -> None:
    text = FORMATS["terminal"].render(many_ranks(count), ReportOptions())
    assert bool(re.search(r"^median ", text, re.MULTILINE)) is summarised


def test_late_ranks_are_marked_in_the_tables() -> None:
    text = FORMATS["terminal"].render(late_rank(), ReportOptions())
    assert len(re.findall(r"^5 late ", text, re.MULTILINE)) == 4  # time, idle, forward, clocks


def test_rules_that_lack_the_same_thing_share_one_entry() -> None:
    again = NotJudged(rule="host-bound", reason="no host side", capture_hint="Profile the CPU.")
    both = structs.replace(single_rank(), not_judged=[structs.replace(again, rule="input-bound"), again])
    text = FORMATS["terminal"].render(both, ReportOptions())
    assert "input-bound, host-bound" in text
    assert text.count("Profile the CPU.") == 1


def test_compute_that_no_phase_accounts_for_is_not_shown_as_zero() -> None:
    phases = [structs.replace(row, compute_ns=0) for row in late_rank().phases]
    text = FORMATS["terminal"].render(structs.replace(late_rank(), phases=phases), ReportOptions())
    assert re.search(r"^forward +40\.0 ms +n/a +40\.0 ms", text, re.MULTILINE)


def test_a_phase_absent_from_a_step_took_no_time_there() -> None:
    # Two steps, one of which has work of no phase: 8 ms and 0 ms, median 4 ms.
    forward = PhaseRow(
        rank=0, step=1, phase="forward", host_ns=MS, compute_ns=10 * MS, comm_ns=0, exposed_comm_ns=0,
        copy_ns=0,
    )  # fmt: skip
    other = structs.replace(forward, phase="other", host_ns=0, compute_ns=0, comm_ns=8 * MS)
    rows = [forward, structs.replace(forward, step=2), other]
    text = FORMATS["terminal"].render(structs.replace(late_rank(), phases=rows), ReportOptions())
    assert re.search(r"^other +0 ns +0 ns +4\.00 ms +0 ns +0 ns$", text, re.MULTILINE)
    assert re.search(r"^forward +1\.00 ms +10\.0 ms ", text, re.MULTILINE)
