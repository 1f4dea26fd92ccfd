"""Leaders and replicas of Kafka that are uneven between brokers."""

from __future__ import annotations

from statistics import median_high
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.kafka import ELECTION, REASSIGN
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class KafkaLeadersUnevenPolicy(Section):
    """Thresholds for leaders that are not where they belong."""

    warning_times_others: int = number(2, "what a broker leads, as a multiple of the median of the others", ge=2)
    warning_owed_percent: int = percent(
        30, "of the partitions that it should lead: it is in sync, and others lead them"
    )
    minimum_leaders: int = number(100, "partitions; fewer are not uneven")


HELD = "select broker, replicas, leads, preferred from kafka_held where listed"

# Partitions whose first replica is in sync and does not lead.
OWED = """
select broker, count(*) as preferred, count(*) filter (in_sync and not leads) as owed
from kafka_replicas join kafka_brokers using (id) where preferred and listed group by broker
"""

REBALANCED = "select bool_or(lower(trim(value)) = 'false') as never from setting('auto.leader.rebalance.enable')"


def judge_leaders(queried: Queried, context: CheckContext[KafkaLeadersUnevenPolicy]) -> Judgement:
    """A warning for a broker that leads far more than the others, or far less than it should."""
    limits, held = context.limits, queried["held"].rows
    if len(held) <= 1:  # one broker has nobody to be compared with
        return Judgement(quiet="There is no other broker to compare with.")
    owed = {row["broker"]: row for row in queried["owed"].rows}
    never = "; auto.leader.rebalance.enable is off" if queried["rebalanced"].one["never"] else ""
    found = []
    for row in held:
        others = median_high([each["leads"] for each in held if each is not row])
        debt = owed.get(row["broker"], {"owed": 0, "preferred": 0})
        much = row["leads"] >= max(limits.minimum_leaders, limits.warning_times_others * others)
        little = debt["owed"] >= limits.minimum_leaders
        little = little and debt["owed"] * 100 >= limits.warning_owed_percent * debt["preferred"]
        if much or little:
            words = (
                f"{row['broker']} leads {counted(row['leads'], 'partition')}, the median of the others is {others:,}"
            )
            if debt["owed"]:
                words += f"; of {debt['preferred']:,} that it should lead, others lead {debt['owed']:,}"
            elif much:
                words += f"; it is the first replica of {row['preferred']:,}"
                words += ", so an election changes nothing" if row["leads"] <= row["preferred"] else ""
            figures = {"leaders": row["leads"], "others_median": others, "owed": debt["owed"]}
            found.append(
                LEADERS.finding(
                    severity=Severity.WARNING, subject=row["broker"], evidence=f"{words}{never}.", figures=figures
                )
            )
    found.sort(key=lambda each: (-each.figures["leaders"], each.subject))
    return Judgement(findings=tuple(found), quiet=_span(held, "leads", "partition"))


def _span(held: tuple[Row, ...], column: str, one: str) -> str:
    values = [row[column] for row in held]
    verb = "lead" if column == "leads" else "hold"
    return f"{counted(len(held), 'broker')} {verb} {min(values):,} to {counted(max(values), one)} each."


LEADERS = Check(
    check_id="kafka-leaders-uneven",
    harm=Harm.SLOW,
    order=30,
    title="A Kafka broker leads far more partitions than the others, or far fewer than it should",
    advice=(
        f"Where others lead for a broker, give partitions back to their first replicas: `{ELECTION}`.",
        "See `auto.leader.rebalance.enable` (on by default), which does so every five minutes.",
        "Where first replicas are uneven: Cruise Control, `rebalance?goals=LeaderReplicaDistributionGoal&dryrun=true`.",
        f"Or order replicas anew: `{REASSIGN} --reassignment-json-file FILE --execute`.",
    ),
    explained_by=("kafka-replicas-out-of-sync",),
    source="docs/kafka.md",
    policy=KafkaLeadersUnevenPolicy,
    cluster={"held": Query(HELD), "owed": Query(OWED), "rebalanced": Query(REBALANCED)},
    judge=judge_leaders,
    system=System.KAFKA,
)


class KafkaReplicasUnevenPolicy(Section):
    """Thresholds for brokers with far more replicas than the others, or next to none."""

    warning_times_others: int = number(2, "replicas, as a multiple of the median of the others", ge=2)
    empty_percent: int = percent(5, "a broker with at most this share of the others' median counts as empty", ge=0)
    minimum_replicas: int = number(500, "on a broker, or on the others of an empty one; fewer are not uneven")


def judge_replicas(queried: Queried, context: CheckContext[KafkaReplicasUnevenPolicy]) -> Judgement:
    """A warning for a broker that holds far more replicas than the others, or next to none."""
    limits, held = context.limits, queried["held"].rows
    if len(held) <= 1:
        return Judgement(quiet="There is no other broker to compare with.")
    found = []
    for row in held:
        others = median_high([each["replicas"] for each in held if each is not row])
        full = row["replicas"] >= max(limits.minimum_replicas, limits.warning_times_others * others)
        empty = others >= limits.minimum_replicas and row["replicas"] * 100 <= limits.empty_percent * others
        if full or empty:
            words = (
                f"{row['broker']} holds {counted(row['replicas'], 'replica')}, the median of the others is {others:,}"
            )
            hint = ": it is new, or was emptied" if empty else ""
            figures = {"replicas": row["replicas"], "others_median": others}
            found.append(
                REPLICAS.finding(
                    severity=Severity.WARNING, subject=row["broker"], evidence=f"{words}{hint}.", figures=figures
                )
            )
    found.sort(key=lambda each: (-each.figures["replicas"], each.subject))
    return Judgement(findings=tuple(found), quiet=_span(held, "replicas", "replica"))


REPLICAS = Check(
    check_id="kafka-replicas-uneven",
    harm=Harm.SLOW,
    order=40,
    title="A Kafka broker holds far more replicas than the others, or next to none",
    advice=(
        "Let Cruise Control even them, in a dry run first: `rebalance?goals=ReplicaDistributionGoal&dryrun=true`.",
        "For a new broker: its `add_broker`. It moves data, paced, and knows disks and traffic.",
        f"By hand: `{REASSIGN} --topics-to-move-json-file FILE --broker-list IDS --generate` makes a proposal.",
        f"Then `{REASSIGN} --reassignment-json-file FILE --execute --throttle BYTES`, and the same with `--verify`.",
    ),
    source="docs/kafka.md",
    policy=KafkaReplicasUnevenPolicy,
    cluster={"held": Query(HELD)},
    judge=judge_replicas,
    system=System.KAFKA,
)
