"""A batch in one sentence, which leads its request, its plan, lists and messages: first what is deleted at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss, size_in_words, total
from pulsar_steward.model.setting import QuotaPolicy
from pulsar_steward.model.step import ChangeSetting, DeleteSubscription
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Step


def loses(step: Step) -> bool:
    """True if brokers delete messages for a step, now or later."""
    return kind_of(step.change).loses_messages or isinstance(step.loss, Loss)


def headline(batch: Batch, at_once: str = ", now") -> str:
    """The change in one sentence: with all that it deletes at once, where it does; else the batch's title.

    Args:
        batch: The batch.
        at_once: Word on the time of what is deleted; empty where the sentence is kept beyond the request.
    """
    losing = [step for step in batch.steps if loses(step)]
    losses = [step.loss for step in losing if isinstance(step.loss, Loss) and step.loss.is_known]
    if not losing or (len(losses) == len(losing) and not any(each.exceeds(NOTHING_LOST) for each in losses)):
        return batch.title
    now = [step for step in losing if not isinstance(step.loss, Loss) or step.loss.exceeds(NOTHING_LOST)]
    words = f"{_verb(now)} {_lost(losses, known=len(losses) == len(losing))}{_where(now)}{at_once}"
    deleted = [step.change for step in batch.steps if isinstance(step.change, DeleteSubscription)]
    if deleted:
        last = {change.topic for change in deleted if not change.stay}
        of_last = f", the last of {counted(len(last), 'topic')}," if last else ""
        words = f"Deletes {counted(len(deleted), 'subscription')}{of_last} with {words.partition(' ')[2]}"
    return f"{batch.title}; {words[0].lower()}{words[1:]}" if batch.is_rollback else words


def _verb(steps: Sequence[Step]) -> str:
    """Evicts, where backlogs are cut to a quota; else deletes."""
    return "Evicts" if all(_evicts(step) for step in steps) else "Deletes"


def _evicts(step: Step) -> bool:
    after = step.change.after_in_force if isinstance(step.change, ChangeSetting) else None
    return getattr(after, "policy", None) is QuotaPolicy.EVICT


def _lost(losses: Sequence[Loss], *, known: bool) -> str:
    if not known:
        some = _lost(losses, known=True).replace("up to", "at least", 1) if losses else "messages"
        return f"{some}, how many {'in all ' if losses else ''}is not known,"
    messages, size = total(loss.messages for loss in losses), size_in_words(total(loss.bytes for loss in losses))
    topics = sum(len(loss.topics) + loss.more for loss in losses)
    of_topics = f" of {counted(topics, 'topic')}" if topics else ""
    if not messages:
        return f"up to {size} of consumed messages{of_topics}"
    return f"up to {counted(messages, 'unread entry', 'unread entries')}{of_topics} ({size})"


def _where(steps: Sequence[Step]) -> str:
    namespaces = sorted({step.change.namespace for step in steps})
    return f" in {namespaces[0] if len(namespaces) == 1 else counted(len(namespaces), 'namespace')}"
