"""Text of an approval request for many steps in several namespaces: sums, and the largest effects of each kind.

Each shortened list states the number of left out items. All steps are in the checkboxes below the text, and on the
plan's page.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.model.content import is_about_several
from pulsar_steward.model.loss import NOTHING_LOST, Loss, entries_in_words, size_in_words, total
from pulsar_steward.model.setting import in_words
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.report.markdown import bullets, codes, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pulsar_steward.changes.kind import ApprovalWarning
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


def first_of(items: Sequence[str], most: int, one: str, many: str | None = None) -> Iterator[str]:
    """The first items, and the number of further ones."""
    yield from items[:most]
    if len(items) > most:
        yield f"and {counted(len(items) - most, one, many)}"


def few_ids(ids: Sequence[str]) -> str:
    """Ids of steps; if there are many, the first ones and the number of further ones."""
    if len(ids) <= MAX_STEPS_IN_FULL:
        return ", ".join(ids)
    return f"{', '.join(ids[:MAX_EXAMPLES])} and {len(ids) - MAX_EXAMPLES:,} more"


def warnings(steps: Sequence[Step], lines_of: Callable[[Step, ApprovalWarning], Iterable[str]]) -> Iterator[str]:
    """Warnings, each kind once, with the total immediate loss and the steps that lose most.

    Args:
        steps: The steps of the batch.
        lines_of: Function from a step and its warning to the lines on it.
    """
    warned: defaultdict[str, list[tuple[Step, ApprovalWarning]]] = defaultdict(list)
    for step in sorted(steps, key=_largest_effect):
        warning = kind_of(step.change).warning(step.loss if isinstance(step.loss, Loss) else None)
        if warning is not None:
            warned[warning.headline].append((step, warning))
    for headline, each in warned.items():
        yield f"# Each of {counted(len(each), 'step')} {headline}"
        told = [line for step, warning in each[:MAX_EXAMPLES] for line in lines_of(step, warning)]
        more = [f"and {counted(len(each) - MAX_EXAMPLES, 'more such step')}"] if len(each) > MAX_EXAMPLES else []
        yield bullets([*_sum_of_losses([step for step, _ in each]), *told, *more])


def reasons(findings: Sequence[Finding], source_of: Callable[[Finding], str]) -> str:
    """Findings by check and severity, the worst first, each with an example.

    Args:
        findings: The findings of the batch.
        source_of: Function from a finding to its check and source, in brackets.
    """
    groups: defaultdict[tuple[int, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[-finding.severity.rank, finding.check_id].append(finding)
    rows = []
    for (_, check_id), found in sorted(groups.items(), key=lambda item: item[0]):
        since = min((each.first_seen for each in found if each.first_seen is not None), default=None)
        rows.append(
            (
                found[0].severity.upper(),
                check_id,
                len(found),
                "" if since is None else time_in_words(since),
                f"{found[0].evidence} {source_of(found[0])}",
            )
        )
    return table(("severity", "check", "findings", "oldest since", "such as"), rows, numbers=frozenset({2}))


def steps_by_value(steps: Sequence[Step]) -> Iterator[str]:
    """Number of steps and namespaces for each new value, the most frequent first."""
    changes = [step.change for step in steps if isinstance(step.change, ChangeSetting)]
    if not changes:
        return
    by_value: defaultdict[str, list[str]] = defaultdict(list)
    for change in changes:
        of_topics = " of topics" if change.topic is not None else ""
        by_value[f"{change.name}{of_topics} to {in_words(change.name, change.after)}"].append(change.namespace)
    ordered = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
    rows: list[Sequence[object]] = [(value, len(names), len(set(names))) for value, names in ordered[:MAX_VALUES]]
    if rest := ordered[MAX_VALUES:]:
        names = [name for _, each in rest for name in each]
        rows.append((f"and {counted(len(rest), 'other value')}", len(names), len(set(names))))
    yield table(("value", "steps", "namespaces"), rows, numbers=frozenset({1, 2}))


def steps_by_namespace(steps: Sequence[Step], page: str) -> Iterator[str]:
    """Rows of the namespaces with the largest effects, and the place of the full list.

    Args:
        steps: The steps of the batch.
        page: Address of the batch on the page of its plan; empty: not known.
    """
    by_namespace: defaultdict[str, list[Step]] = defaultdict(list)
    for step in sorted(steps, key=_largest_effect):
        by_namespace[step.change.namespace].append(step)
    ordered = sorted(by_namespace.items(), key=lambda item: _effect_of(item[1]))
    rows = [
        (name, len(each), _changes(each), _loss_in_words(each), _clients(each)) for name, each in ordered[:MAX_ROWS]
    ]
    yield table(("namespace", "steps", "changes", "deleted at most", "clients"), rows, numbers=frozenset({1, 4}))
    where = f"on [the plan's page]({page})" if page else "on the plan's page"
    more = ordered[MAX_ROWS:]
    rest = f"And {counted(len(more), 'more namespace')}. " if more else ""
    yield f"{rest}Every step by itself is among the ticks below, and {where}."


def examples(lines: Sequence[str], what: str) -> str:
    """The first lines, and the number of further ones, with `what` as their name."""
    return bullets(first_of(lines, MAX_EXAMPLES, f"more {what}"))


def calls(steps: Sequence[Step]) -> str:
    """The first calls, and the number of further ones."""
    shown = codes(str(kind_of(step.change).call()) for step in steps[:MAX_EXAMPLES])
    return f"{shown}\n{bullets([f'and {len(steps) - MAX_EXAMPLES:,} more, each as its tick says'])}"


def averted(steps: Sequence[Step], line_of: Callable[[Step], Iterable[str]]) -> Iterator[str]:
    """Section on the effect of a rejection, by the steps that avert most.

    Args:
        steps: The steps of the batch.
        line_of: Function from a step to the lines on the data that it averts losing.
    """
    averting = [(step, step.averts) for step in steps if isinstance(step.averts, Loss)]
    if not averting:
        return
    ordered = sorted(averting, key=lambda each: -(each[1].bytes or 0))
    lines = [line for step, _ in ordered[:MAX_EXAMPLES] for line in line_of(step)]
    more = [f"and {counted(len(ordered) - MAX_EXAMPLES, 'more step')}"] if len(ordered) > MAX_EXAMPLES else []
    yield "### What rejecting means"
    yield bullets([*lines, *more])


def _largest_effect(step: Step) -> tuple[int, int, int, int]:
    return _effect_of([step])


def _effect_of(steps: Sequence[Step]) -> tuple[int, int, int, int]:
    """Sort key, the largest effects first: deleted data, then clients that reconnect, then topics."""
    losses = [step.loss for step in steps if isinstance(step.loss, Loss)]
    return (
        -sum(loss.bytes or 0 for loss in losses),
        -sum(loss.messages or 0 for loss in losses),
        -sum(step.touched.clients for step in steps if kind_of(step.change).disturbs is not None),
        -sum(step.touched.topics for step in steps),
    )


def _changes(steps: Sequence[Step]) -> str:
    described = [kind_of(step.change).describe().replace(f" of {step.change.namespace}:", ":", 1) for step in steps]
    return "; ".join(first_of(described, MAX_CHANGES, "more change"))


def _clients(steps: Sequence[Step]) -> str:
    return f"{sum(step.touched.clients for step in steps if kind_of(step.change).disturbs is not None):,}"


def _loss_in_words(steps: Sequence[Step]) -> str:
    """Stored data that is deleted at once, by the steps' figures."""
    deleting = [step for step in steps if kind_of(step.change).loses_messages or isinstance(step.loss, Loss)]
    if not deleting:
        return "nothing"
    return size_in_words(total(step.loss.bytes if isinstance(step.loss, Loss) else None for step in deleting))


def _sum_of_losses(steps: Sequence[Step]) -> Iterator[str]:
    losing = [(step, step.loss) for step in steps if isinstance(step.loss, Loss) and step.loss.exceeds(NOTHING_LOST)]
    if not losing:
        return
    losses = [loss for _, loss in losing]
    messages = total(loss.messages for loss in losses)
    unread = "" if messages == 0 else f"{entries_in_words(messages)}, "
    namespaces = len({step.change.namespace for step, _ in losing})
    size = size_in_words(total(loss.bytes for loss in losses))
    yield f"in {counted(namespaces, 'namespace')} together at once: {unread}{size} at most; the most of it in:"
