"""Lists of steps in the details of a batch: the largest effects of each kind first.

Each shortened list states the number of left out items; the plan's page has all steps.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss, entries_in_words, size_in_words, total
from pulsar_steward.model.plan import is_about_several
from pulsar_steward.model.setting import in_words
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pulsar_steward.changes.kind import ApprovalWarning, Aspect
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Step

MAX_STEPS_IN_FULL = 12
"""Maximum number of steps that are always described one by one, whatever their namespaces."""

MAX_ROWS = 10
"""Maximum number of steps or differences that a section lists one by one."""

MAX_VALUES = 20
"""Maximum number of values that are listed one by one, each with its frequency."""

MAX_EXAMPLES = 5
"""Maximum number of steps that are listed one by one if each needs a sentence or more."""


def is_large(batch: Batch) -> bool:
    """True if a batch is described by sums."""
    return len(batch.steps) > MAX_STEPS_IN_FULL and is_about_several(batch)


def first_of(items: Sequence[str], most: int, one: str) -> tuple[str, ...]:
    """The first items, and the number of further ones."""
    return (*items[:most], *further(len(items) - most, one))


def further(number: int, one: str) -> Iterator[str]:
    """Number of further things, if there are any."""
    if number > 0:
        yield f"and {counted(number, one)}"


def few_ids(ids: Sequence[str]) -> str:
    """Ids of steps; if there are many, the first ones and the number of further ones."""
    if len(ids) <= MAX_STEPS_IN_FULL:
        return ", ".join(ids)
    return f"{', '.join(ids[:MAX_EXAMPLES])} and {len(ids) - MAX_EXAMPLES:,} more"


def warnings(
    steps: Sequence[Step], lines_of: Callable[[Step, ApprovalWarning], Iterable[str]]
) -> Iterator[tuple[str, Iterable[str]]]:
    """Sections of the warnings, each kind once, with the total immediate loss and the steps that lose most."""
    warned: defaultdict[str, list[tuple[Step, ApprovalWarning]]] = defaultdict(list)
    for step in sorted(steps, key=lambda each: _effect_of([each])):
        if warning := warning_of(step):
            warned[warning.headline_after(step.guards)].append((step, warning))
    for headline, each in warned.items():
        told = [line for step, warning in each[:MAX_ROWS] for line in lines_of(step, warning)]
        more = further(len(each) - MAX_ROWS, "more such step")
        whole = _sum_of_losses([step for step, _ in each]) if len(each) > 1 else ()
        yield on_steps(headline, len(each)), [*whole, *told, *more]


def on_steps(headline: str, number: int) -> str:
    """A warning's headline with the number of its steps: ``Stops producers (60 steps)``."""
    return f"{headline[:1].upper()}{headline[1:]} ({counted(number, 'step')})"


def warning_of(step: Step) -> ApprovalWarning | None:
    """Warning for whoever approves a step."""
    return kind_of(step.change).warning(step)


def values(steps: Sequence[Step]) -> tuple[str, ...]:
    """Each new value with the number of its steps and namespaces, the most frequent first."""
    by_value: defaultdict[str, list[str]] = defaultdict(list)
    for change in (step.change for step in steps):
        if isinstance(change, ChangeSetting):
            of_topics = " of topics" if change.topic is not None else ""
            by_value[f"{change.name}{of_topics} to {in_words(change.name, change.after)}"].append(change.namespace)
    ordered = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [
        f"{value}: {counted(len(names), 'step')} in {counted(len(set(names)), 'namespace')}" for value, names in ordered
    ]
    return first_of(lines, MAX_VALUES, "other value")


def examples(batch: Batch, aspect: Aspect | None = None) -> Sequence[str]:
    """Reasons of a batch's steps, or of those with an aspect; of a large batch the first, and the number of others."""
    steps = [step for step in batch.steps if aspect is None or aspect in kind_of(step.change).aspects]
    lines = [f"{step.step_id}: {step.why}." for step in steps]
    return first_of(lines, MAX_EXAMPLES, "more step") if is_large(batch) else lines


def averted(steps: Sequence[Step], line_of: Callable[[Step], Iterable[str]]) -> tuple[str, ...]:
    """Effect of a rejection, by the steps that avert most."""
    averting = [(step, step.averts) for step in steps if isinstance(step.averts, Loss)]
    ordered = sorted(averting, key=lambda each: -(each[1].bytes or 0))
    lines = [line for step, _ in ordered[:MAX_ROWS] for line in line_of(step)]
    return (*lines, *further(len(ordered) - MAX_ROWS, "more step"))


def _effect_of(steps: Sequence[Step]) -> tuple[int, int, int, int]:
    """Sort key, the largest effects first: deleted data, then clients that reconnect, then topics."""
    losses = list(filter(None, (step.known_loss for step in steps)))
    return (
        -sum(loss.bytes or 0 for loss in losses),
        -sum(loss.messages or 0 for loss in losses),
        -_clients(steps),
        -sum(step.touched.topics for step in steps),
    )


def _clients(steps: Sequence[Step]) -> int:
    """Clients that reconnect."""
    return sum(step.touched.clients for step in steps if kind_of(step.change).disturbs is not None)


def _sum_of_losses(steps: Sequence[Step]) -> Iterator[str]:
    losing = [(step, loss) for step in steps if (loss := step.known_loss) and loss.exceeds(NOTHING_LOST)]
    if not losing:
        return
    losses = [loss for _, loss in losing]
    messages = total(loss.messages for loss in losses)
    unread = "" if messages == 0 else f"{entries_in_words(messages)}, "
    namespaces = len({step.change.namespace for step, _ in losing})
    size = size_in_words(total(loss.bytes for loss in losses))
    yield f"in {counted(namespaces, 'namespace')} together at once: {unread}{size} at most; the most of it in:"
