"""Decision card: the few lines that a person reads before answering; everything else is on the plan's page."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.headline import headline, loses
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.model.finding import Severity, by_size
from pulsar_steward.model.loss import NOTHING_LOST, Loss, size_in_words, total
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import ChangeSetting, DeleteSubscription, SetIsolation, SplitBundle, UnloadBundle
from pulsar_steward.model.trouble import harm_of
from pulsar_steward.model.units import MINUTE, counted, seconds_in_words, time_in_words
from pulsar_steward.report.approval_group import further, on_steps, warning_of
from pulsar_steward.report.what_changed import what_changed
from pulsar_steward.report.when import begin_of, least_time, seconds_without_service
from pulsar_steward.report.worth import grave_findings, worth_in_brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.ledger.rows import RecordedAnswer
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.approval import Terms
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.report.what_changed import Former

MAX_CHANGES = 2
"""Changes that the card shows one by one."""

MAX_WORDS = 107
"""Words of a card; an approval request adds a link and the plan's digest."""

MAX_WORDS_STAYING = 14
"""Words of the line on what a rollback does not take back."""

MAX_WARNINGS = 2
"""Other harms that the card names; of more it tells the number."""

MAX_NAME = 40
"""Characters of an approver's name."""

LEAST_WORDS = 6
"""A line that would have to be cut to fewer words is left out."""


YOURS = " The second approval is yours."
TROUBLE_STAYS, NOTHING_CHANGES = "If rejected, the trouble stays.", "If rejected, nothing changes."
"""What goes without saying: left out where words are short."""


class DecisionCard(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in few words; all texts are unescaped, and an empty one says that there is nothing to say.

    Attributes:
        headline: The change, with what it deletes.
        first: Approval that a second person should confirm.
        partial: Brokers and namespaces missing in the snapshot.
        worth: What the batch solves, with its risk.
        changed: Differences from the question that this one replaces.
        changes: The first changes, each from its old to its new value, and the number of further ones.
        first_change: The first of them alone, in few words, and the number of further ones.
        stays: What a rollback does not take back.
        why: The gravest finding.
        clients: Who is cut off, for how long, and what is delivered again or lost on the way.
        costs: What a larger quota lets topics store besides.
        beware: Other harm that the steps' warnings tell, with the number of steps.
        open: That an isolation policy is also about what matches it later.
        undo: How to undo it, and what does not come back.
        rejected: What a rejection means.
        without_loss: A change without loss.
        when: When it begins, and until when an answer counts.
    """

    headline: str
    first: str = ""
    partial: str = ""
    worth: str = ""
    changed: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    first_change: tuple[str, ...] = ()
    stays: str = ""
    why: str = ""
    clients: str = ""
    costs: str = ""
    beware: tuple[str, ...] = ()
    open: str = ""
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
        return tuple(filter(None, (self.worth, *self.changes, self.stays, *self.changed)))

    def _fitting(self, first: str, answering: tuple[str, ...]) -> tuple[str, ...]:
        """The lines in order; differences and evidence get the words that others leave. No change is cut."""
        last = [self.clients, self.costs, *self.beware, self.open, self.undo, *answering]
        stays = _cut_to(self.stays.split(), MAX_WORDS_STAYING)
        changes = self.changes
        leading = (first, self.partial)
        left = MAX_WORDS - _words(self.headline, *leading, *changes, stays, *last)
        if left < 0:  # the plan's page has all of it
            last = [each for each in last if each not in {self.without_loss, TROUBLE_STAYS, NOTHING_CHANGES}]
            changes, leading = self.first_change, (first.removesuffix(YOURS), self.partial)
        return tuple(filter(None, (*leading, *changes, stays, *_cut((*self.changed, self.why), left), *last)))


def _words(*lines: str) -> int:
    return sum(any(map(str.isalnum, word)) for each in lines for word in each.split())


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
        partial=_partial(plan.lacking),
        worth="; ".join(filter(None, (f"Risk: {risk}", _worth(batch)))) + ".",
        changed=_differences(batch, former) if former else (),
        changes=_changes(batch.steps, MAX_CHANGES),
        first_change=_changes(batch.steps, 1, brief=True),
        stays=_stays(plan, batch),
        why=_why(plan, batch),
        clients=_clients(batch, policy),
        costs=_costs([step for step in batch.steps if not loses(step)]),
        beware=(*_later(losing), *_beware(step for step in batch.steps if not loses(step))),
        open=_open(batch.steps),
        undo=_undo(batch.steps, losing),
        rejected=_rejected(batch),
        without_loss="" if batch.is_rollback else _without_loss(losing),
        when=_when(batch, policy, terms, now) if policy and terms else "",
    )


def _partial(lacking: Sequence[str]) -> str:
    if not lacking:
        return ""
    read = f" and {len(lacking) - 1:,} more were" if len(lacking) > 1 else " was"
    return f"The snapshot is partial: {lacking[0]}{read} not read."


def _first(batch: Batch, first: RecordedAnswer) -> str:
    extent = f"{len(first.step_ids)} of {counted(len(batch.steps), 'step')}"
    name = first.answered_by or "somebody"
    name = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
    return f"{name} approved {extent} at {time_in_words(first.answered_at)}.{YOURS}"


def _differences(batch: Batch, former: Former) -> tuple[str, ...]:
    """The first differences from the former question, and then why it ended."""
    why, *differences = what_changed(batch, former)
    return (*differences, why)[:MAX_CHANGES]


def _worth(batch: Batch) -> str:
    if batch.is_rollback:
        return worth_in_brief(batch)
    found = grave_findings(batch)
    return f"fixes {found}" if found else ""


def _changes(steps: Sequence[Step], most: int, *, brief: bool = False) -> tuple[str, ...]:
    """All changes if they are at most so many, else the first one; then how many more steps there are, by kind.

    First come changes that delete messages, or begin the batch, then the most frequent ones.
    """
    alike: dict[str, list[Step]] = {}
    for step in steps:
        alike.setdefault(_described(step), []).append(step)
    kind = type(steps[0].change)
    groups = sorted(
        alike.values(),
        key=lambda each: (not any(map(loses, each)), not isinstance(each[0].change, kind), -len(each)),
    )
    shown = groups if len(groups) <= most else groups[:1]
    more = Counter(_kind_in_words(step) for group in groups[len(shown) :] for step in group).most_common()
    told = [counted(number, one, many) for (one, many), number in more[:MAX_CHANGES]]
    told += further(sum(number for _, number in more[MAX_CHANGES:]), "other change")
    rest = f"And {', '.join(told)}." if told else ""
    return tuple(filter(None, (*(_of_all(group, brief=brief) for group in shown), rest)))


def _described(step: Step, *, brief: bool = False) -> str:
    kind = kind_of(step.change)
    words = kind.describe_in_brief() if brief else kind.describe()
    return words.replace(f" of {step.change.namespace}:", ":", 1)


def _of_all(alike: Sequence[Step], *, brief: bool) -> str:
    """Steps that make the same change, with their namespaces."""
    words, namespaces = _described(alike[0], brief=brief), {step.change.namespace for step in alike}
    first = min(namespaces)
    where = first if len(namespaces) == 1 else counted(len(namespaces), "namespace")
    return words if first in words else f"{where}: {words}"


def _kind_in_words(step: Step) -> tuple[str, str]:
    """The kind of a change, in the singular and in the plural."""
    match step.change:
        case UnloadBundle():
            return "move", "moves"
        case SplitBundle():
            return "split", "splits"
        case DeleteSubscription():
            return "deletion", "deletions"
        case ChangeSetting(name=name):
            return f"change of {name}", f"changes of {name}"
        case _:
            return "other change", "other changes"


def _stays(plan: Plan, batch: Batch) -> str:
    """What a rollback does not take back, the number first."""
    if not batch.is_rollback or not plan.notes:
        return ""
    return f"Not taken back: {counted(len(plan.notes), 'step')}, such as: {plan.notes[0]}."


def _why(plan: Plan, batch: Batch) -> str:
    worst = by_size(batch.findings)[:1]
    return f"Why: {worst[0].in_words(plan.cluster)}" if worst and not batch.is_rollback else ""


def _clients(batch: Batch, policy: Policy | None) -> str:
    moving = [step for step in batch.steps if kind_of(step.change).disturbs is not None]
    coordinators = sum(step.touched.coordinators for step in batch.steps)
    parts = ["No client has to reconnect"]
    if moving:
        seconds = seconds_without_service(batch, policy) if policy else None
        lasts = f"about {seconds_in_words(seconds, rounded=True)}" if seconds else "a moment"
        number = sum(step.touched.topics for step in moving)
        topics = counted(number, "partition is", "partitions are") if number else "its bundles are"
        number = sum(step.touched.clients for step in moving)
        clients = counted(number, "client reconnects", "clients reconnect") if number else "no client is connected"
        parts = [f"{topics} not served for {lasts}{', bundle by bundle' if len(moving) > 1 else ''}", clients]
    if coordinators:
        parts.append(counted(coordinators, "transaction coordinator pauses", "transaction coordinators pause"))
    if again := sum(step.moving_messages.again for step in moving):
        parts.append(f"up to {counted(again, 'acknowledged message comes', 'acknowledged messages come')} again")
    volatile = sum(step.moving_messages.volatile_topics for step in moving)
    messages = sum(step.moving_messages.lost for step in moving)
    if volatile and messages:
        lost = counted(messages, "message")
        parts.append(f"{counted(volatile, 'non-persistent topic loses', 'non-persistent topics lose')} up to {lost}")
    return f"{'; '.join(parts)}."


def _costs(steps: Sequence[Step]) -> str:
    """Bytes by which a larger size quota lets each topic store more, the most of all steps."""
    changes = [step.change for step in steps]
    pairs = [(each.before_in_force, each.after_in_force) for each in changes if isinstance(each, ChangeSetting)]
    limits = [
        (before.limit_bytes, after.limit_bytes)
        for before, after in pairs
        if isinstance(before, BacklogQuota) and isinstance(after, BacklogQuota) and before.limit_bytes > 0
    ]
    if any(after <= 0 for _, after in limits):
        return "Topics may store without a limit."
    more = max((after - before for before, after in limits), default=0)
    return f"Each topic may store up to {size_in_words(more)} more." if more > 0 else ""


def _later(losing: Sequence[Step]) -> Iterator[str]:
    """Steps for which brokers delete nothing at once, but may later."""
    later = [step for step in losing if isinstance(step.loss, Loss) and not step.loss.exceeds(NOTHING_LOST)]
    if later and len(later) == len(losing):
        yield "Deletes nothing now; brokers may delete messages later."


def _beware(steps: Iterable[Step]) -> Iterator[str]:
    """Headlines of the steps' warnings, each once, with the number of steps, the most frequent first."""
    told = (warning.headline_after(step.guards) for step in steps if (warning := warning_of(step)))
    warnings = Counter(told).most_common()
    for words, number in warnings[:MAX_WARNINGS]:
        yield f"{on_steps(words, number)}."
    yield from further(len(warnings) - MAX_WARNINGS, "more kind of warning")


def _open(steps: Sequence[Step]) -> str:
    sets = any(isinstance(step.change, SetIsolation) and step.change.after is not None for step in steps)
    return "New matching namespaces join automatically." if sets else ""


def _undo(steps: Sequence[Step], losing: Sequence[Step]) -> str:
    """How far it can be undone, and how a person undoes an isolation policy that guards would not let Steward undo."""
    by = [step.change for step in steps if isinstance(step.change, SetIsolation) and step.undo is None]
    former = ["delete the policy" if each.before is None else "set the former policy" for each in by]
    return " ".join([_undoable(steps, losing), *(f"By hand: {words}." for words in former[:1])])


def _undoable(steps: Sequence[Step], losing: Sequence[Step]) -> str:
    final = sum(step.undo is None or not kind_of(step.change).undoable for step in steps)
    moving = any(step.moving_messages.lost for step in steps)
    lost = "deleted messages" if losing else "lost messages" if moving else ""
    if final == len(steps):
        return "It cannot be undone."
    if final:
        nor = f", nor {lost}" if lost else ""
        return f"{final:,} of {counted(len(steps), 'step')} cannot be undone{nor}."
    change = steps[0].change
    one = f"The {change.name.value if isinstance(change, ChangeSetting) else 'change'}"
    return f"{'All steps' if len(steps) > 1 else one} can be reverted{f'; {lost} cannot' if lost else ''}."


def _rejected(batch: Batch) -> str:
    averted = [step.averts for step in batch.steps if isinstance(step.averts, Loss)]
    if not averted:
        if any(_evicts_now(step) for step in batch.steps):
            return "If rejected, brokers go on evicting unread messages over the present limit."
        if batch.is_rollback or all(each.severity is Severity.INFO for each in batch.findings):
            return NOTHING_CHANGES
        goes_on = _grave_headline(batch)
        return f"If rejected, this goes on: {goes_on}." if goes_on else TROUBLE_STAYS
    messages = total(loss.messages for loss in averted)
    if messages is None:
        return "If rejected, brokers may delete unread messages, how many is not known."
    return f"If rejected, brokers may delete up to {counted(messages, 'unread entry', 'unread entries')}."


def _grave_headline(batch: Batch) -> str:
    """Headline of the worst harm that its findings do now; empty: they do none that has one."""
    known = [each for each in batch.findings if each.check_id in BY_ID]
    worst = min(known, key=lambda each: harm_of(each, BY_ID).rank, default=None)
    return BY_ID[worst.check_id].headlines.get(harm_of(worst, BY_ID), "") if worst else ""


def _evicts_now(step: Step) -> bool:
    """True if a present quota evicts, in place of which a step sets one that evicts less or nothing."""
    before = step.change.before_in_force if isinstance(step.change, ChangeSetting) else None
    return getattr(before, "policy", None) is QuotaPolicy.EVICT and not loses(step)


def _without_loss(losing: Sequence[Step]) -> str:
    """The size that every evicting quota would need, where nothing else loses messages.

    Eviction starts at 90 % of the limit. So an eighth is added to the largest backlog, enough also when rounded.
    """
    sizes = [_largest_evicted(step) for step in losing]
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(sizes):
        return ""
    return f"A quota of {size_in_words(max(known) * 9 // 8)} would evict nothing now."


def _largest_evicted(step: Step) -> int | None:
    """Bytes of the largest backlog that a size quota evicts; None: not known, or it loses messages otherwise."""
    change, loss = step.change, step.loss
    if not isinstance(change, ChangeSetting) or change.name is not SettingName.SIZE_QUOTA:
        return None
    return loss.topics[0].bytes if isinstance(loss, Loss) and loss.is_known and loss.topics else None


def _when(batch: Batch, policy: Policy, terms: Terms, now: datetime | None) -> str:
    answer, valid = (
        seconds_in_words(minutes * MINUTE)
        for minutes in (policy.approval.response_timeout_minutes, terms.valid_minutes)
    )
    begin = begin_of(batch, policy, terms, now) if now else None
    counts = "from the opening" if begin is not None and now is not None and begin.at > now else "from the answer"
    begins = begin.in_brief(now) if begin is not None and now is not None else ""
    takes = least_time(batch, policy)
    lasts = ""
    if takes > timedelta(minutes=terms.valid_minutes):
        lasts = f" It takes {seconds_in_words(takes.total_seconds(), rounded=True)} at least: the rest is refused."
    rejected = f"No answer in {answer} means no; approval lasts {valid} {counts}.{lasts}"
    return f"{begins} {rejected}".lstrip()
