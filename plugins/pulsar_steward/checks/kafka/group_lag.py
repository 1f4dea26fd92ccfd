"""Consumer groups of Kafka that are behind, in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, critical_or_warning
from pulsar_steward.checks.earlier import WINDOW, WINDOW_MINUTES, looking_back
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import HOUR, MINUTE, counted, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.checks.check import CheckContext, Queried, Row

RESET = "kafka-consumer-groups.sh --bootstrap-server SERVERS --group GROUP --reset-offsets --topic TOPIC"
HANGING = "kafka-transactions.sh --bootstrap-server SERVERS find-hanging --broker-id ID"


class KafkaGroupLagPolicy(Section):
    """Thresholds for the age of the message that a consumer group wants next, and for positions beyond the end.

    Ages are told apart in steps: 1, 5, 15, 30 min, 1, 2, 6, 12 h, 1, 3 and 7 d.
    """

    warning_seconds: int = number(30 * MINUTE, "of the partition that it is behind on for longest")
    critical_seconds: int = number(6 * HOUR, "a quarter of a day of work to be caught up")
    minimum_messages: int = number(100, "behind on all partitions; the end of a transaction counts as one, for ever")
    minimum_partitions_beyond: int = number(1, "whose end is before the offset that the group committed")
    window_minutes: int = number(WINDOW_MINUTES, WINDOW)


# A row with an end before the committed offset is about a position beyond the end, and about no lag.
BEHIND = """
with lags as (select *, concat(topic, '-', partition) as name, committed > end_offset as beyond,
    greatest(end_offset - committed, 0) as lag from kafka_lags)
select group_id, any_value(state) as state, sum(lag)::bigint as messages,
    count(*) filter (not beyond) as partitions,
    max(behind_seconds) as seconds, coalesce(sum(greatest(start_offset - committed, 0)), 0)::bigint as deleted,
    arg_max(name, (coalesce(behind_seconds, -1), lag)) as worst,
    count(*) filter (beyond) as beyond,
    arg_max(struct_pack(name := name, at := committed, until := end_offset), committed - end_offset) as farthest,
    coalesce(messages >= $minimum_messages and max(behind_seconds) >= $warning_seconds, false)
        or deleted >= $minimum_messages as behind,
    behind and coalesce(max(behind_seconds) >= $critical_seconds, false) as critical
from lags join kafka_groups using (group_id)
group by group_id
having behind or count(*) filter (beyond) >= $minimum_partitions_beyond
"""

TOTALS = """
select count(*) as groups, count(*) filter (lag_messages > 0) as behind, count(*) filter (partitions is null) as unread,
    count(*) filter (untold > 0 or group_id in (select group_id from kafka_lags where timed and behind_seconds is null))
        as untold,
    (select max(behind_seconds) from kafka_lags) as seconds
from kafka_groups
"""


def judge(queried: Queried, _context: CheckContext[KafkaGroupLagPolicy]) -> Judgement:
    """A warning or worse for each group that is behind by so much time, with its lag at the look before."""
    before: dict[str, tuple[datetime, int]] = {}
    for row in sorted(queried["before"].rows, key=lambda row: row["taken_at"]):
        if row["lag_messages"] is not None:
            before[row["group_id"]] = row["taken_at"], row["lag_messages"]
    found = queried["found"]
    findings = tuple(
        CHECK.finding(
            severity=critical_or_warning(row),
            subject=f"group {row['group_id']}",
            evidence=_evidence(row, before.get(row["group_id"])),
            figures={"beyond": row["beyond"], "messages": row["messages"], "partitions": row["partitions"]}
            | ({} if row["seconds"] is None else {"behind_seconds": row["seconds"]}),
        )
        for row in found.rows
    )
    totals = queried["totals"].one
    oldest = f", by {seconds_in_words(totals['seconds'])} at least" if totals["seconds"] else ""
    quiet = f"Behind: {totals['behind']:,} of {counted(totals['groups'], 'consumer group')}{oldest}."
    unread = f"Offsets of {counted(totals['unread'], 'consumer group')} were not read." if totals["unread"] else None
    if totals["untold"]:
        some = f"Some partitions of {counted(totals['untold'], 'consumer group')} did not tell their offsets."
        unread = f"{unread} {some}" if unread else some
    return Judgement(
        findings=findings,
        more=found.more,
        graded=found.more_by(critical_or_warning),
        quiet=quiet,
        cannot_tell=unread,
    )


def _evidence(row: Row, before: tuple[datetime, int] | None) -> str:
    parts = [_behind(row, before)] if row["behind"] else []
    if row["beyond"]:
        parts.append(_beyond(row))
    return " ".join(parts)


def _beyond(row: Row) -> str:
    farthest = row["farthest"]
    return (
        f"It committed offset {farthest['at']:,} of {farthest['name']}, which ends at {farthest['until']:,}, and is"
        f" beyond the end of {counted(row['beyond'], 'partition')}{_without_members(row)}. Messages were"
        " lost there, as by an unclean election, or the topic was made anew."
    )


def _without_members(row: Row) -> str:
    return ", and has no member" if row["state"] == "empty" else ""


def _behind(row: Row, before: tuple[datetime, int] | None) -> str:
    age = f"is {seconds_in_words(row['seconds'])} old or older" if row["seconds"] else "is new, or there is none"
    if row["seconds"] is None:
        age = "did not tell its age"
    words = (
        f"The message of {row['worst']} that it can read next {age};"
        f" it is {counted(row['messages'], 'message')} behind on {counted(row['partitions'], 'partition')}"
    )
    if row["deleted"]:
        words += f", of which {row['deleted']:,} were deleted unread"
    if before is not None:
        at, messages = before
        change = row["messages"] - messages
        compared = f"{abs(change):,} {'more' if change > 0 else 'fewer'} than" if change else "as many as"
        words += f", {compared} at {time_in_words(at)}"
    return f"{words}{_without_members(row)}."


CHECK = Check(
    check_id="kafka-group-lag",
    harm=lambda finding: Harm.LOSING if finding.figures.get("beyond") else Harm.SLOW,
    order=60,
    title="A consumer group of Kafka is far behind, or beyond the end of a partition",
    headlines={
        Harm.LOSING: "MESSAGES MAY BE SKIPPED: a consumer group of Kafka is beyond the end of a partition",
        Harm.SLOW: "A consumer group of Kafka is far behind",
    },
    advice=(
        "See members and partitions: `kafka-consumer-groups.sh --bootstrap-server SERVERS --describe --group GROUP`.",
        "Without members: start the application, or let its owner delete the group if nobody needs it.",
        "Behind on one partition: its consumer stands still, or that partition gets most of the messages.",
        f"Or it waits for an open transaction: `{HANGING}`, with the id of the partition's leader.",
        "Behind on all: more consumers, up to the number of partitions; see how long each message takes them.",
        "Compare with the topic's `retention.ms`: what is older is deleted, consumed or not.",
        "Beyond the end: what is written until the end reaches its offset, it skips; or `auto.offset.reset` decides.",
        f"Set it back while its consumers are stopped: `{RESET} --to-datetime TIME`, then the same with `--execute`.",
        "See whether `unclean.leader.election.enable` is on (off by default), and who made the topic anew.",
    ),
    source="docs/kafka.md",
    policy=KafkaGroupLagPolicy,
    shards={"found": Query(BEHIND, worst_first="critical desc, seconds desc, messages desc, group_id", small=True)},
    earlier={
        "before": looking_back(
            "select group_id, lag_messages from kafka_groups semi join found using (group_id)", small=True
        )
    },
    cluster={"totals": Query(TOTALS)},
    judge=judge,
    system=System.KAFKA,
)
