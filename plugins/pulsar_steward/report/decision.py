"""Decision card: the few lines that a person reads before answering; everything else is on the plan's page."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss, entries_in_words, size_in_words, total
from pulsar_steward.model.setting import QuotaPolicy, SettingName
from pulsar_steward.model.step import ChangeSetting, DeleteSubscription
from pulsar_steward.model.units import MINUTE, counted, seconds_in_words, time_in_words
from pulsar_steward.report.approval_group import warning_of
from pulsar_steward.report.what_changed import what_changed
from pulsar_steward.report.when import begin_of, seconds_without_service
from pulsar_steward.report.worth import grave_findings, worth_in_brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.ledger.rows import RecordedAnswer
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.approval_terms import Terms
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.report.what_changed import Former

MAX_CHANGES = 2
"""Changes that the card shows one by one."""

MAX_WORDS = 102
"""Words of a card; an approval request adds a link and the plan's digest."""

LEAST_WORDS = 6
"""A line that would have to be cut to fewer words is left out."""


class DecisionCard(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in few words; all texts are unescaped, and an empty one says that there is nothing to say.

    Attributes:
        headline: The change, with what it deletes.
        first: Approval that a second person should confirm.
        worth: What the batch solves, with its risk.
        changed: Differences from the question that this one replaces.
        changes: The first changes, each from its old to its new value, and the number of further ones.
        why: The gravest finding.
        clients: Who is cut off, for how long, and what is delivered again or lost on the way.
        beware: Other harm that the steps' warnings tell, with the number of steps.
        undo: How to undo it, and what does not come back.
        rejected: What a rejection means.
        without_loss: A change without loss.
        when: When it begins, and until when an answer counts.
    """

    headline: str
    first: str = ""
    worth: str = ""
    changed: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    why: str = ""
    clients: str = ""
    beware: tuple[str, ...] = ()
    undo: str = ""
    rejected: str = ""
    without_loss: str = ""
    when: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines below the headline, for somebody who still has to answer."""
        return tuple(filter(None, (self.worth, *self.lines_of_request)))

    @property
    def lines_of_request(self) -> tuple[str, ...]:
        """The same for a request, whose subject tells worth and risk."""
        return self._fitting(self.first, (self.rejected, self.without_loss, self.when))

    @property
    def lines_answered(self) -> tuple[str, ...]:
        """The lines below the headline, once the answer is given."""
        return tuple(filter(None, (self.worth, *self._fitting("", ()))))

    @property
    def lines_over(self) -> tuple[str, ...]:
        """The lines below the headline, once nothing more is carried out."""
        return tuple(filter(None, (self.worth, *self.changed, *self.changes)))

    def _fitting(self, first: str, answering: tuple[str, ...]) -> tuple[str, ...]:
        """The lines in order; evidence, changes and differences are cut to the words that the others leave."""
        last = (self.clients, *self.beware, self.undo, *answering)
        left = MAX_WORDS - sum(len(each.split()) for each in (self.headline, first, *last))
        return tuple(filter(None, (first, *_cut((*self.changed, *self.changes, self.why), left), *last)))


def _cut(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Lines of at most so many words together: a longer one is cut, or empty where little would be left."""
    words = [each.split() for each in lines]
    before = accumulate((len(each) for each in words), initial=0)
    return tuple(_cut_to(each, most - used) for each, used in zip(words, before, strict=False))


def _cut_to(words: Sequence[str], most: int) -> str:
    if len(words) <= most:
        return " ".join(words)
    return f"{' '.join(words[: most - 1])} …" if most >= LEAST_WORDS else ""


def decision_of(
    plan: Plan,
    batch: Batch,
    policy: Policy | None,
    *,
    first: RecordedAnswer | None = None,
    former: Former | None = None,
    now: datetime | None = None,
) -> DecisionCard:
    """The card of a batch.

    Args:
        plan: Its plan.
        batch: The batch.
        policy: The policy with the terms of an approval; None: not known, and nothing is said of times.
        first: The approval that a second person should confirm; None: this is the first question.
        former: The question that this one replaces; None: it replaces none.
        now: Current time; None: nothing is said of the begin.
    """
    losing = [step for step in batch.steps if loses(step)]
    risk = risk_of(plan, batch).level
    terms = policy.approval.terms(batch.answered_as, risk) if policy else None
    return DecisionCard(
        headline=headline(batch),
        first=_first(batch, first) if first else "",
        worth="; ".join(filter(None, (f"Risk: {risk}", _worth(batch)))) + ".",
        changed=what_changed(batch, former)[:MAX_CHANGES] if former else (),
        changes=(*_changes(batch.steps), *_stays(plan, batch)),
        why=_why(batch),
        clients=_clients(batch, policy),
        beware=(*_later(losing), *_beware(step for step in batch.steps if not loses(step))),
        undo=_undo(batch.steps, losing),
        rejected=_rejected(batch.steps),
        without_loss=_without_loss(batch.steps),
        when=_when(batch, policy, terms, now) if policy and terms else "",
    )


def loses(step: Step) -> bool:
    """True if brokers delete messages for a step, now or later."""
    return kind_of(step.change).loses_messages or isinstance(step.loss, Loss)


def headline(batch: Batch) -> str:
    """The change in one sentence: with all that it deletes at once, where it does; else the batch's title."""
    losing = [step for step in batch.steps if loses(step)]
    losses = [step.loss for step in losing if isinstance(step.loss, Loss) and step.loss.is_known]
    if not losing or (len(losses) == len(losing) and not any(each.exceeds(NOTHING_LOST) for each in losses)):
        return batch.title
    now = [step for step in losing if not isinstance(step.loss, Loss) or step.loss.exceeds(NOTHING_LOST)]
    words = f"{_verb(now)} {_lost(losses, known=len(losses) == len(losing))}{_where(now)}, now"
    deleted = [step for step in batch.steps if isinstance(step.change, DeleteSubscription)]
    if deleted:
        words = f"Deletes {counted(len(deleted), 'subscription')} with {words.partition(' ')[2]}"
    return f"{batch.title}; {words[0].lower()}{words[1:]}" if batch.is_rollback else words


def _verb(steps: Sequence[Step]) -> str:
    """Evicts, where backlogs are cut to a quota; else deletes."""
    return "Evicts" if all(_evicts(step) for step in steps) else "Deletes"


def _evicts(step: Step) -> bool:
    after = step.change.after_in_force if isinstance(step.change, ChangeSetting) else None
    return getattr(after, "policy", None) is QuotaPolicy.EVICT


def _lost(losses: Sequence[Loss], *, known: bool) -> str:
    if not known:
        return "messages, how many is not known,"
    messages, size = total(loss.messages for loss in losses), size_in_words(total(loss.bytes for loss in losses))
    topics = sum(len(loss.topics) + loss.more for loss in losses)
    of_topics = f" of {counted(topics, 'topic')}" if topics else ""
    if not messages:
        return f"up to {size} of consumed messages{of_topics}"
    return f"up to {counted(messages, 'unread entry', 'unread entries')}{of_topics} ({size})"


def _where(steps: Sequence[Step]) -> str:
    namespaces = sorted({step.change.namespace for step in steps})
    return f" in {namespaces[0] if len(namespaces) == 1 else counted(len(namespaces), 'namespace')}"


def _first(batch: Batch, first: RecordedAnswer) -> str:
    extent = f"{len(first.step_ids)} of {counted(len(batch.steps), 'step')}"
    return f"{first.answered_by} approved {extent} at {time_in_words(first.answered_at)}. A second person has to."


def _worth(batch: Batch) -> str:
    if batch.is_rollback:
        return worth_in_brief(batch)
    found = grave_findings(batch)
    return f"fixes {found}" if found else ""


def _changes(steps: Sequence[Step]) -> Iterator[str]:
    """The most frequent changes, those that delete messages first; of more, the number of all steps comes first."""
    by_words: dict[str, list[Step]] = {}
    for step in steps:
        words = kind_of(step.change).describe().replace(f" of {step.change.namespace}:", ":", 1)
        by_words.setdefault(words, []).append(step)
    ordered = sorted(by_words.items(), key=lambda item: (not any(map(loses, item[1])), -len(item[1])))[:MAX_CHANGES]
    more = len(steps) - sum(len(alike) for _, alike in ordered)
    for words, alike in ordered[:1] if more else ordered:
        namespaces = {step.change.namespace for step in alike}
        first = min(namespaces)
        where = f"{first}: " if len(namespaces) == 1 else f"{counted(len(namespaces), 'namespace')}: "
        of_all = f"{counted(len(steps), 'step')}, such as: " if more else ""
        yield f"{of_all}{'' if first in words else where}{words}"


def _stays(plan: Plan, batch: Batch) -> Iterator[str]:
    """What a rollback does not take back."""
    if batch.is_rollback and plan.notes:
        more = f", and {counted(len(plan.notes) - 1, 'more step')}" if len(plan.notes) > 1 else ""
        yield f"Not taken back: {plan.notes[0]}{more}."


def _why(batch: Batch) -> str:
    worst = max(batch.findings, key=lambda each: each.severity.rank, default=None)
    return "" if worst is None or batch.is_rollback else f"Why: {worst.evidence}"


def _clients(batch: Batch, policy: Policy | None) -> str:
    moving = [step for step in batch.steps if kind_of(step.change).disturbs is not None]
    coordinators = sum(step.touched.coordinators for step in batch.steps)
    parts = ["No client has to reconnect"]
    if moving:
        seconds = seconds_without_service(batch, policy) if policy else None
        lasts = f"about {seconds_in_words(seconds, rounded=True)}" if seconds else "a moment"
        topics = counted(sum(step.touched.topics for step in moving), "partition is", "partitions are")
        number = sum(step.touched.clients for step in moving)
        clients = counted(number, "client reconnects", "clients reconnect") if number else "no client is connected"
        parts = [f"{topics} not served for {lasts}, one bundle after the other", clients]
    if coordinators:
        parts.append(counted(coordinators, "transaction coordinator pauses", "transaction coordinators pause"))
    if again := sum(step.moving_messages.again for step in moving):
        parts.append(f"up to {counted(again, 'acknowledged message comes', 'acknowledged messages come')} again")
    if volatile := sum(step.moving_messages.volatile_topics for step in moving):
        lost = counted(sum(step.moving_messages.lost for step in moving), "message")
        parts.append(f"{counted(volatile, 'non-persistent topic loses', 'non-persistent topics lose')} up to {lost}")
    return f"{'; '.join(parts)}."


def _later(losing: Sequence[Step]) -> Iterator[str]:
    """Steps for which brokers delete nothing at once, but may later."""
    later = [step for step in losing if isinstance(step.loss, Loss) and not step.loss.exceeds(NOTHING_LOST)]
    if later and len(later) == len(losing):
        yield "Deletes nothing now; brokers may delete messages later."


def _beware(steps: Iterable[Step]) -> Iterator[str]:
    """Headlines of the steps' warnings, each once, with the number of steps."""
    warnings = [warning for step in steps if (warning := warning_of(step))]
    for words, number in Counter(each.headline for each in warnings).items():
        yield f"{counted(number, 'step')}: {words}."


def _undo(steps: Sequence[Step], losing: Sequence[Step]) -> str:
    final = sum(step.undo is None or not kind_of(step.change).undoable for step in steps)
    change = steps[0].change
    if final == len(steps):
        return "It cannot be undone."
    if final:
        words = f"{final:,} of {counted(len(steps), 'step')} cannot be undone"
    elif len(steps) > 1:
        words = "All steps can be reverted"
    else:
        words = f"The {change.name.value if isinstance(change, ChangeSetting) else 'change'} can be reverted"
    if losing:
        return f"{words}; deleted messages cannot."
    return f"{words}; lost messages cannot." if any(step.moving_messages.lost for step in steps) else f"{words}."


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
    return f"A size quota above {size_in_words(max(known))} would evict nothing now; the policy sets a smaller one."


def _evicted(steps: Sequence[Step]) -> Iterator[int | None]:
    """Bytes of the largest backlogs that size quotas evict."""
    for step in steps:
        if isinstance(step.change, ChangeSetting) and step.change.name is SettingName.SIZE_QUOTA:
            yield from (topic.bytes for topic in step.loss.topics[:1]) if isinstance(step.loss, Loss) else ()


def _when(batch: Batch, policy: Policy, terms: Terms, now: datetime | None) -> str:
    answer, valid = (
        seconds_in_words(minutes * MINUTE)
        for minutes in (policy.approval.response_timeout_minutes, terms.valid_minutes)
    )
    begins = _begins(batch, policy, terms, now) if now else ""
    return f"{begins}No answer within {answer} is a rejection; an approval counts for {valid} after it."


def _begins(batch: Batch, policy: Policy, terms: Terms, now: datetime) -> str:
    """The begin, where maintenance windows defer or prevent it, as a sentence to be continued; else empty."""
    begin = begin_of(batch, policy, terms, now)
    at = time_in_words(begin.at)
    if begin.approve_from is not None:
        return f"Approve after {time_in_words(begin.approve_from)}, not now: the maintenance window opens {at}. "
    return f"Begins when the maintenance window opens, {at}. " if begin.at > now else ""
