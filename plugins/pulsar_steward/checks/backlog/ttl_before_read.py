"""Topics whose TTL deletes, or will soon, what a slow subscription has not read, with the loss as a forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.defaults import DEFAULTS, Defaults
from pulsar_steward.checks.backlog.unread_loss import (
    BEFORE,
    MAX_ROWS,
    SLOW,
    WORST_FIRST,
    TtlBeforeReadPolicy,
    UnreadLoss,
)
from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, Question, Scope
from pulsar_steward.checks.earlier import EarlierRows, looking_back, window_minutes
from pulsar_steward.checks.unread import BROKERS_READ, nothing_read
from pulsar_steward.model.finding import Finding
from pulsar_steward.model.units import bytes_in_words, counted, number_in_words, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext


def judge(answers: Answers, context: CheckContext[TtlBeforeReadPolicy]) -> Judgement:
    """Critical where a TTL deletes now what somebody reads too slowly; a warning where it soon will."""
    before = EarlierRows.of(answers["before"], context, window_minutes, "topic", "subscription")
    losses = [UnreadLoss.of(row, context.limits_of(row["namespace"]), before) for row in answers["slow"].rows]
    found = sorted((each for each in losses if each is not None and each.matters), key=lambda each: each.order)
    if found:
        more = max(0, len(found) - MAX_FINDINGS) + answers["slow"].more
        return Judgement(findings=tuple(map(_finding, found[:MAX_FINDINGS])), more=more)
    return Judgement(
        quiet=context.in_each_part(
            lambda limits: (
                f"No TTL deletes within {counted(limits.warning_hours, 'hour')} what a subscription of"
                f" {limits.minimum_entries:,} or more entries has not read."
            )
        ),
        cannot_tell=(
            nothing_read(answers["read"])
            or Defaults.of(answers["defaults"]).unknown("ttl_seconds")
            or _missing(answers, sum(each is None for each in losses))
        ),
    )


def _missing(answers: Answers, unknown: int) -> str | None:
    """Reason why backlogs that come near their TTL prove nothing yet."""
    if answers["slow"].more:
        return f"More than {counted(MAX_ROWS, 'topic')} come near their TTL; those that were looked up lose nothing."
    if not unknown:
        return None
    return (
        f"{counted(unknown, 'topic comes', 'topics come')} near the TTL, and there is no earlier snapshot that shows"
        " whether the backlog grows."
    )


def _finding(loss: UnreadLoss) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=loss.severity,
        subject=loss.row["topic"],
        evidence=_evidence(loss),
        figures=loss.figures,
    )


def _evidence(loss: UnreadLoss) -> str:
    row = loss.row
    entries = counted(row["backlog_entries"], "entry", "entries")
    backlog = f"has not read {entries} ({bytes_in_words(row['backlog_bytes'] or 0, rounded=True)})"
    return (
        f"Subscription {row['subscription']} of {row['topic']} on {row['broker']} {backlog}{_age(loss)}; messages"
        f" expire after {seconds_in_words(row['ttl_seconds'], rounded=True)}. {_loss(loss)} {_who(loss)}"
    )


def _age(loss: UnreadLoss) -> str:
    if loss.age_seconds is None:
        return ""
    age = seconds_in_words(loss.age_seconds, rounded=True)
    if loss.row["oldest_seconds"] is not None:
        return f", the oldest {age} old"
    return f", about {age} of what is published now"


def _loss(loss: UnreadLoss) -> str:
    a_day = f"{counted(loss.entries_a_day, 'entry is', 'entries are')} lost"
    rate = number_in_words(round(loss.expired_per_second or loss.grown_per_second, 2))
    if loss.unread_percent is not None:
        return (
            f"Of what is published, {loss.unread_percent:.0f} % is not read, and the backlog hardly grows: the TTL"
            f" deletes about {rate} entries/s unread, and {a_day} in the next 24 h."
        )
    if loss.expired_per_second:
        looks = "this snapshot" if loss.looks == 1 else f"the mean of {counted(loss.looks, 'snapshot')}"
        if loss.told_per_second > loss.expired_per_second:
            looks += f", where brokers tell {number_in_words(round(loss.told_per_second, 2))} of single minutes"
        return f"The TTL deletes {rate} entries/s unread ({looks}): at this rate {a_day} in the next 24 h."
    left = loss.seconds_left or 0
    begins = f"in {seconds_in_words(left, rounded=True)} the TTL begins to delete" if round(left) else "the TTL deletes"
    return f"Its backlog grows by {rate} entries/s: {begins} as many unread, and {a_day} in the next 24 h."


def _who(loss: UnreadLoss) -> str:
    consumers = loss.row["consumers"]
    if consumers:
        return f"{counted(consumers, 'consumer is', 'consumers are')} connected to it, and too slow."
    return "No consumer is connected to it: it may be that the TTL is meant to clear it."


CHECK = Check(
    check_id="ttl-before-read",
    order=105,
    title="A TTL deletes what a slow subscription has not read",
    advice=(
        "Make whoever reads faster: more consumers, more partitions, or less work for each message.",
        "Raise the TTL while they catch up: pulsar-admin namespaces set-message-ttl; backlog and quota grow with it.",
        "Where nothing may be lost, set a quota that stops producers first: pulsar-admin namespaces set-backlog-quota.",
        "What was deleted is acknowledged: where retention still keeps it, reset the cursor to read it again.",
    ),
    source="docs/knowledge.md B: TTL deletes what a slow subscription has not read",
    scope=Scope.NAMESPACE,
    policy=TtlBeforeReadPolicy,
    shards={"slow": Question(SLOW, worst_first=WORST_FIRST, most=MAX_ROWS)},
    earlier={"before": looking_back(BEFORE)},
    cluster={"read": BROKERS_READ, "defaults": DEFAULTS},
    judge=judge,
)
