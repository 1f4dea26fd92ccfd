"""Decision card: the few lines that a person reads before anything else of an approval request."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss, entries_in_words, size_in_words, total
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.units import MINUTE, counted, seconds_in_words
from pulsar_steward.report.approval_group import warning_of
from pulsar_steward.report.worth import worth_in_brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.approval_terms import Terms
    from pulsar_steward.policy.schema import Policy

MAX_CHANGES = 2
"""Changes that the card shows one by one."""


class DecisionCard(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in at most 120 words; all texts are unescaped, and an empty one says that there is nothing to say.

    Attributes:
        loss: Data that is deleted at once.
        worth: What the batch solves, with its risk.
        changes: The first changes, each from its old to its new value, and the number of further ones.
        clients: Who is cut off.
        beware: Other harm that the steps' warnings tell, with the number of steps.
        undo: How to undo it, and what does not come back.
        rejected: What a rejection means.
        without_loss: A change without loss.
        counts: Until when an answer counts.
    """

    loss: str
    worth: str
    changes: tuple[str, ...]
    clients: str
    beware: tuple[str, ...]
    undo: str
    rejected: str
    without_loss: str
    counts: str

    @property
    def lines(self) -> tuple[str, ...]:
        """The card, line by line."""
        words = (self.loss, self.worth, *self.changes, self.clients, *self.beware, self.undo, self.rejected)
        return tuple(filter(None, (*words, self.without_loss, self.counts)))


def decision_of(plan: Plan, batch: Batch, policy: Policy | None) -> DecisionCard:
    """The card of a batch; without a policy it does not tell for how long an answer counts."""
    losing = [step for step in batch.steps if _loses(step)]
    risk, changes = risk_of(plan, batch).level, [kind_of(step.change).describe() for step in batch.steps]
    more = len(changes) - MAX_CHANGES
    return DecisionCard(
        loss=_loss(losing),
        worth="; ".join(filter(None, (f"Risk: {risk}", worth_in_brief(batch)))) + ".",
        changes=(*changes[:MAX_CHANGES], *([f"and {counted(more, 'more step')}"] if more > 0 else [])),
        clients=_clients(batch.steps),
        beware=tuple(_beware(step for step in batch.steps if not _loses(step))),
        undo=_undo(batch.steps, loses=bool(losing)),
        rejected=_rejected(batch.steps),
        without_loss=_without_loss(batch.steps),
        counts=_counts(policy, policy.approval.terms(batch.answered_as, risk)) if policy else "",
    )


def _counts(policy: Policy, terms: Terms) -> str:
    answer, valid = (
        seconds_in_words(minutes * MINUTE)
        for minutes in (policy.approval.response_timeout_minutes, terms.valid_minutes)
    )
    return f"No answer within {answer} is a rejection; an approval counts for {valid}."


def _loses(step: Step) -> bool:
    return kind_of(step.change).loses_messages or isinstance(step.loss, Loss)


def _loss(losing: Sequence[Step]) -> str:
    if not losing:
        return ""
    losses = [step.loss for step in losing if isinstance(step.loss, Loss) and step.loss.is_known]
    if len(losses) < len(losing):
        return "DELETES MESSAGES NOW, how many is not known."
    if not any(loss.exceeds(NOTHING_LOST) for loss in losses):
        return "Deletes nothing now; brokers may delete messages later."
    messages, size = total(loss.messages for loss in losses), size_in_words(total(loss.bytes for loss in losses))
    what = (
        f"up to {entries_in_words(messages)} that nobody has read ({size})" if messages else f"up to {size}, consumed"
    )
    return f"DELETES NOW {what}."


def _clients(steps: Sequence[Step]) -> str:
    moving = [step.touched for step in steps if kind_of(step.change).disturbs is not None]
    topics = counted(sum(each.topics for each in moving), "partition is", "partitions are")
    clients = counted(sum(each.clients for each in moving), "client reconnects", "clients reconnect")
    coordinators = sum(step.touched.coordinators for step in steps)
    paused = f"; {counted(coordinators, 'transaction coordinator pauses', 'transaction coordinators pause')}"
    words = f"{topics} not served for a moment; {clients}" if moving else "No client has to reconnect"
    return f"{words}{paused if coordinators else ''}."


def _beware(steps: Iterable[Step]) -> Iterator[str]:
    """Headlines of the steps' warnings, each once, with the number of steps."""
    warnings = [warning for step in steps if (warning := warning_of(step))]
    for headline, number in Counter(each.headline for each in warnings).items():
        yield f"{counted(number, 'step')}: {headline}."


def _undo(steps: Sequence[Step], *, loses: bool) -> str:
    final = sum(step.undo is None or not kind_of(step.change).undoable for step in steps)
    if final == len(steps):
        words = "It cannot be undone."
    elif final:
        words = f"{final:,} of {counted(len(steps), 'step')} cannot be undone."
    else:
        words = "The change can be reverted."
    return f"{words} Deleted messages do not come back." if loses else words


def _rejected(steps: Sequence[Step]) -> str:
    averted = [step.averts for step in steps if isinstance(step.averts, Loss)]
    if not averted:
        return "If rejected, nothing changes."
    many = entries_in_words(total(loss.messages for loss in averted))
    return f"If rejected, brokers may delete up to {many} unread."


def _without_loss(steps: Sequence[Step]) -> str:
    """The size that every evicting quota would need: brokers evict whole backlogs of topics over it."""
    sizes = list(_evicted(steps))
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(sizes):
        return ""
    return f"A size quota above {size_in_words(max(known))} evicts nothing now."


def _evicted(steps: Sequence[Step]) -> Iterator[int | None]:
    """Bytes of the largest backlogs that size quotas evict."""
    for step in steps:
        if isinstance(step.change, ChangeSetting) and step.change.name is SettingName.SIZE_QUOTA:
            yield from (topic.bytes for topic in step.loss.topics[:1]) if isinstance(step.loss, Loss) else ()
