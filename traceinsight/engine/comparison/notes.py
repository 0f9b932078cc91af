"""What makes two runs less comparable, and which edit seems to lie between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceinsight.base.errors import UsageError
from traceinsight.base.units import format_factor, format_ranks
from traceinsight.diagnosis import Diagnosis, Run
from traceinsight.diagnosis.comparison import ComparisonNote, EditHint
from traceinsight.replay.edits.registry import parse_edit

_PARTS_SHOWN = 8
_LEAST_STEPS = 4  # per side: the fewest that give an interval of 95 %


MOST_BATCH_RATIO = 1000
"""Beyond it a step is not made of time per example any more, and one of the numbers is likely a mistake."""


def notes_on(before: Diagnosis, after: Diagnosis, *, on_host: bool) -> list[ComparisonNote]:
    """Most serious first."""
    pairs = [*_identity(before, after), *_setting(before.run, after.run), *_ranks(before.run, after.run)]
    pairs += _steps(before.run, after.run, on_host=on_host)
    pairs += [*_empty_steps("BEFORE", before), *_empty_steps("AFTER", after)]
    return [ComparisonNote(code=code, message=message) for code, message in pairs]


def _identity(before: Diagnosis, after: Diagnosis) -> Iterator[tuple[str, str]]:
    measured = (before.step_times, before.partition)
    if any(measured) and measured == (after.step_times, after.partition):
        yield "same-input", "Both runs hold the same measurements: the same run was given twice."
    if before.run.simulated != after.run.simulated:
        which = "BEFORE" if before.run.simulated else "AFTER"
        yield "origin", f"{which} is simulated, the other run was measured."
    elif before.run.simulated:
        yield "origin", "Both runs are simulated, not measured."


def _setting(before: Run, after: Run) -> Iterator[tuple[str, str]]:
    if before.world_size != after.world_size:
        yield (
            "world-size",
            f"The jobs differ in size: {_known(before.world_size)} and {_known(after.world_size)} ranks; "
            "their steps do different work.",
        )
    if before.device != after.device:
        yield "device", f"The devices differ: {_known(before.device)} and {_known(after.device)}."
    if before.backend != after.backend:
        yield "backend", f"The backends differ: {_known(before.backend)} and {_known(after.backend)}."
    if before.batch_per_rank != after.batch_per_rank:
        yield "batch", _batch(before.batch_per_rank, after.batch_per_rank)
    if before.quantized_comms != after.quantized_comms:
        formats = [", ".join(one.quantized_comms) or "none seen" for one in (before, after)]
        yield "quantized-comms", f"Quantized communication: {formats[0]} before, {formats[1]} after."
    if before.sharding_group_size != after.sharding_group_size:
        sizes = [one.sharding_group_size or "none" for one in (before, after)]
        yield "sharding-groups", f"2D sharding groups: {sizes[0]} before, {sizes[1]} after."


def _batch(before: int | None, after: int | None) -> str:
    if before is None or after is None:
        which = "BEFORE" if before is None else "AFTER"
        return f"The batch of {which} is not recorded: whether examples per step are equal cannot be told."
    sizes = f"{before:,} and {after:,} examples per rank"
    if not batches_compare(before, after):
        return f"The batches differ: {sizes}. That far apart, steps are compared as they are."
    return f"The batches differ: {sizes}. The verdict compares steps at BEFORE's batch."


def batches_compare(before: int, after: int) -> bool:
    """Whether the steps of such batches can be brought to one batch."""
    return max(before, after) <= MOST_BATCH_RATIO * min(before, after)


def _ranks(before: Run, after: Run) -> Iterator[tuple[str, str]]:
    if before.world_size != after.world_size:
        return
    shared = set(before.ranks) & set(after.ranks)
    if set(before.ranks) != set(after.ranks):
        kept = f"only the ranks that both have count: {format_ranks(shared, max_parts=_PARTS_SHOWN)}"
        none = "and they share none, so different ranks are compared"
        yield "ranks", f"The runs captured different ranks; {kept if shared else none}."
    if before.missing_ranks or after.missing_ranks:
        counts = [len(one.missing_ranks) for one in (before, after)]
        yield "missing-ranks", f"Ranks not captured: {counts[0]} before, {counts[1]} after."


def _steps(before: Run, after: Run, *, on_host: bool) -> Iterator[tuple[str, str]]:
    counts = [len(one.steps) for one in (before, after)]
    if counts[0] != counts[1]:
        yield "steps", f"Steps analysed: {counts[0]} before, {counts[1]} after."
    if 1 < min(counts) < _LEAST_STEPS:
        yield "few-steps", "With so few steps the interval is the widest there is, and covers less than 95 %."
    if before.step_source != after.step_source:
        yield (
            "step-source",
            f"Steps were found by {before.step_source} before and by {after.step_source} after: they may not "
            "begin at the same place.",
        )
    if on_host:
        yield (
            "host-steps",
            "A run lacks device windows: the host's steps are compared, which end before the device is done.",
        )


def _empty_steps(which: str, diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    empty = {row.step for row in diagnosis.partition if row.window_ns <= 0}
    if empty:
        yield (
            "empty-steps",
            f"In {which} {len(empty)} of {len(diagnosis.run.steps)} steps have no length on some rank: "
            "durations are missing there. Steps without any are left out of the step time.",
        )


def edit_hints(before: Diagnosis, after: Diagnosis, given: Sequence[str]) -> list[EditHint]:
    """Edits that the runs tell plainly, without those that were given."""
    names = {edit.partition("=")[0] for edit in given}
    found = [*_of_facts(before.run, after.run), *_of_roadmap(before, after)]
    hints = [hint for hint in found if hint.edit.partition("=")[0] not in names]
    return [hint for hint in hints if _exists(hint.edit)]


def _exists(edit: str) -> bool:
    try:
        parse_edit(edit)
    except UsageError:
        return False
    return True


def _of_roadmap(before: Diagnosis, after: Diagnosis) -> Iterator[EditHint]:
    """The first change that BEFORE's roadmap names, when what it was to mend is gone."""
    first = next((entry for entry in before.roadmap if entry.edit is not None), None)
    if first is None or first.edit is None:
        return
    left = {finding.rule for finding in after.findings} | {one.rule for one in after.not_judged}
    if first.rule not in left:
        yield EditHint(
            edit=first.edit, reason=f"BEFORE's roadmap begins with it, and AFTER is free of {first.rule}"
        )


def _of_facts(before: Run, after: Run) -> Iterator[EditHint]:
    if not before.quantized_comms and len(after.quantized_comms) == 1:
        (name,) = after.quantized_comms
        yield EditHint(edit=f"qcomms={name}", reason=f"only AFTER sends {name}")
    if before.batch_per_rank and after.batch_per_rank and after.batch_per_rank > before.batch_per_rank:
        grown = after.batch_per_rank / before.batch_per_rank
        yield EditHint(edit=f"batch={grown:g}", reason=f"AFTER's batch is {format_factor(grown)} as large")
    size = after.sharding_group_size
    if size and before.sharding_group_size is None:
        yield EditHint(edit=f"2d={size}", reason=f"only AFTER shards in groups of {size:,} ranks")


def _known(value: object | None) -> str:
    return "not recorded" if value is None else str(value)
