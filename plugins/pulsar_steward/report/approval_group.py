"""Text of an approval request for many steps in several namespaces: sums, and the largest effects of each kind.

Each shortened list states the number of left out items. All steps are in the checkboxes below the text, and on the
plan's page.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss, entries_in_words, size_in_words, total
from pulsar_steward.model.plan import is_about_several
from pulsar_steward.model.setting import in_words
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.report.markdown import bullets, codes, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pulsar_steward.changes.kind import ApprovalWarning, Aspect
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Step

MAX_STEPS_IN_FULL = 12
"""Maximum number of steps that are always described one by one, whatever their namespaces."""

MAX_ROWS = 40
"""Maximum number of namespaces that are listed one by one."""

MAX_VALUES = 20
"""Maximum number of values that are listed one by one, each with its frequency."""

MAX_EXAMPLES = 5
"""Maximum number of steps that are listed one by one if each needs a sentence or more."""

MAX_CHANGES = 3
"""Maximum number of changes of one namespace in its row."""


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


def warnings(steps: Sequence[Step], lines_of: Callable[[Step, ApprovalWarning], Iterable[str]]) -> Iterator[str]:
    """Warnings, each kind once, with the total immediate loss and the steps that lose most."""
    warned: defaultdict[str, list[tuple[Step, ApprovalWarning]]] = defaultdict(list)
    for step in sorted(steps, key=lambda each: _effect_of([each])):
        if warning := warning_of(step):
            warned[warning.headline].append((step, warning))
    for headline, each in warned.items():
        yield f"# Each of {counted(len(each), 'step')} {headline}"
        told = [line for step, warning in each[:MAX_EXAMPLES] for line in lines_of(step, warning)]
        more = further(len(each) - MAX_EXAMPLES, "more such step")
        yield bullets([*_sum_of_losses([step for step, _ in each]), *told, *more])


def warning_of(step: Step) -> ApprovalWarning | None:
    """Warning for whoever approves a step."""
    return kind_of(step.change).warning(_loss(step))


def reasons(findings: Sequence[Finding], source_of: Callable[[Finding], str]) -> str:
    """Findings by check and severity, the worst first, each with an example and the source of its check."""
    groups: defaultdict[tuple[int, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[-finding.severity.rank, finding.check_id].append(finding)
    rows = []
    for (_, check_id), found in sorted(groups.items(), key=lambda item: item[0]):
        since = min((each.first_seen for each in found if each.first_seen is not None), default=None)
        oldest, example = "" if since is None else time_in_words(since), f"{found[0].evidence} {source_of(found[0])}"
        rows.append((found[0].severity.upper(), check_id, len(found), oldest, example))
    return table(("severity", "check", "findings", "oldest since", "such as"), rows, numbers=frozenset({2}))


def sums(steps: Sequence[Step], page: str) -> Iterator[str]:
    """The steps by new value, then by namespace, and the place of the full list, the plan's page if that is known."""
    if changes := [step.change for step in steps if isinstance(step.change, ChangeSetting)]:
        yield _by_value(changes)
    by_namespace: defaultdict[str, list[Step]] = defaultdict(list)
    for step in sorted(steps, key=lambda each: _effect_of([each])):
        by_namespace[step.change.namespace].append(step)
    ordered = sorted(by_namespace.items(), key=lambda item: _effect_of(item[1]))
    rows = [(name, *_row(name, each)) for name, each in ordered[:MAX_ROWS]]
    yield table(("namespace", "steps", "changes", "deleted at most", "clients"), rows, numbers=frozenset({1, 4}))
    where = f"on [the plan's page]({page})" if page else "on the plan's page"
    more = len(ordered) - MAX_ROWS
    rest = f"And {counted(more, 'more namespace')}. " if more > 0 else ""
    yield f"{rest}Every step by itself is among the ticks below, and {where}."


def _by_value(changes: Sequence[ChangeSetting]) -> str:
    """Number of steps and namespaces for each new value, the most frequent first."""
    by_value: defaultdict[str, list[str]] = defaultdict(list)
    for change in changes:
        of_topics = " of topics" if change.topic is not None else ""
        by_value[f"{change.name}{of_topics} to {in_words(change.name, change.after)}"].append(change.namespace)
    ordered = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
    rows: list[Sequence[object]] = [(value, len(names), len(set(names))) for value, names in ordered[:MAX_VALUES]]
    if rest := ordered[MAX_VALUES:]:
        names = [name for _, each in rest for name in each]
        rows.append((f"and {counted(len(rest), 'other value')}", len(names), len(set(names))))
    return table(("value", "steps", "namespaces"), rows, numbers=frozenset({1, 2}))


def _row(namespace: str, steps: Sequence[Step]) -> tuple[object, ...]:
    """Cells of a namespace: steps, changes, data that is deleted at once by the steps' figures, and clients."""
    kinds = [kind_of(step.change) for step in steps]
    described = [kind.describe().replace(f" of {namespace}:", ":", 1) for kind in kinds]
    deleting = [step for step, kind in zip(steps, kinds, strict=True) if kind.loses_messages or _loss(step)]
    deleted = size_in_words(total(loss.bytes if (loss := _loss(step)) else None for step in deleting))
    return (
        len(steps),
        "; ".join(first_of(described, MAX_CHANGES, "more change")),
        deleted if deleting else "nothing",
        f"{_clients(steps):,}",
    )


def examples(batch: Batch, aspect: Aspect | None = None) -> Sequence[str]:
    """Reasons of a batch's steps, or of those with an aspect; of a large batch the first, and the number of others."""
    steps = [step for step in batch.steps if aspect is None or aspect in kind_of(step.change).aspects]
    lines = [f"{step.step_id}: {step.why}." for step in steps]
    return first_of(lines, MAX_EXAMPLES, "more step") if is_large(batch) else lines


def calls(steps: Sequence[Step]) -> str:
    """The first calls, and the number of further ones."""
    shown = codes(str(kind_of(step.change).call()) for step in steps[:MAX_EXAMPLES])
    return f"{shown}\n{bullets([f'and {len(steps) - MAX_EXAMPLES:,} more, each as its tick says'])}"


def averted(steps: Sequence[Step], line_of: Callable[[Step], Iterable[str]]) -> Iterator[str]:
    """Section on the effect of a rejection, by the steps that avert most."""
    averting = [(step, step.averts) for step in steps if isinstance(step.averts, Loss)]
    ordered = sorted(averting, key=lambda each: -(each[1].bytes or 0))
    lines = [line for step, _ in ordered[:MAX_EXAMPLES] for line in line_of(step)]
    if lines:
        yield "### What rejecting means"
        yield bullets([*lines, *further(len(ordered) - MAX_EXAMPLES, "more step")])


def _effect_of(steps: Sequence[Step]) -> tuple[int, int, int, int]:
    """Sort key, the largest effects first: deleted data, then clients that reconnect, then topics."""
    losses = list(filter(None, map(_loss, steps)))
    return (
        -sum(loss.bytes or 0 for loss in losses),
        -sum(loss.messages or 0 for loss in losses),
        -_clients(steps),
        -sum(step.touched.topics for step in steps),
    )


def _clients(steps: Sequence[Step]) -> int:
    """Clients that reconnect."""
    return sum(step.touched.clients for step in steps if kind_of(step.change).disturbs is not None)


def _loss(step: Step) -> Loss | None:
    return step.loss if isinstance(step.loss, Loss) else None


def _sum_of_losses(steps: Sequence[Step]) -> Iterator[str]:
    losing = [(step, loss) for step in steps if (loss := _loss(step)) and loss.exceeds(NOTHING_LOST)]
    if not losing:
        return
    losses = [loss for _, loss in losing]
    messages = total(loss.messages for loss in losses)
    unread = "" if messages == 0 else f"{entries_in_words(messages)}, "
    namespaces = len({step.change.namespace for step, _ in losing})
    size = size_in_words(total(loss.bytes for loss in losses))
    yield f"in {counted(namespaces, 'namespace')} together at once: {unread}{size} at most; the most of it in:"
