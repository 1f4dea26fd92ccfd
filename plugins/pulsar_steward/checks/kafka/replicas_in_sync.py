"""Replicas of Kafka that are missing or out of sync, and those that leave and come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, RowCheck, critical_or_warning
from pulsar_steward.checks.earlier import WINDOW, WINDOW_MINUTES, by_time, looking_back, too_few, within
from pulsar_steward.checks.kafka import REASSIGN
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm, by_severity
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row

SHORT = "kafka-topics.sh --bootstrap-server SERVERS --describe --under-min-isr-partitions"


class KafkaReplicasOutOfSyncPolicy(Section):
    """When replicas out of sync are told."""

    minimum_replicas: int = number(1, "of one broker, out of sync or missing")


# A partition whose only replica in sync is down keeps that one on its list: what is not listed is missing as well.
# A topic whose settings were not read has those of the brokers.
OUT = """
with brokers_need as (select max(try_cast(trim(value) as bigint)) as least from setting('min.insync.replicas')),
states as (
    select r.topic, r.partition, r.id, b.broker, b.listed, p.leader is null as leaderless,
        not r.in_sync or not b.listed as missing, coalesce(t.min_in_sync, d.least) as needed,
        not leaderless and len(p.in_sync) < needed as short
    from kafka_replicas r join kafka_brokers b using (id) join kafka_partitions p using (topic, partition)
        left join kafka_topics t using (topic) cross join brokers_need d)
select broker, listed, count(*) as replicas, count(*) filter (missing) as out,
    count(*) filter (missing and leaderless) as leaderless, count(*) filter (missing and short) as short,
    count(*) filter (missing and not leaderless and needed is null) as unknown,
    min(concat(topic, '-', partition)) filter (missing) as example,
    count(*) filter (missing and (leaderless or short)) > 0 as critical
from states group by broker, listed having count(*) filter (missing) >= $minimum_replicas
"""


def _evidence(row: Row) -> str:
    down = "" if row["listed"] else ", which is down"
    words = (
        f"Of {counted(row['replicas'], 'replica')} on {row['broker']}{down}, {row['out']:,} are out of sync, such as"
        f" {row['example']}"
    )
    if row["leaderless"]:
        words += f"; {counted(row['leaderless'], 'partition')} without a leader cannot be used"
    if row["short"]:
        words += (
            f"; {counted(row['short'], 'partition')} with fewer in sync than min.insync.replicas"
            f" {'refuses' if row['short'] == 1 else 'refuse'} `acks=all`"
        )
    if row["unknown"]:
        words += (
            f"; whether {counted(row['unknown'], 'partition')} can be written with `acks=all` is not known:"
            " min.insync.replicas was not read"
        )
    return f"{words}."


OUT_OF_SYNC = RowCheck(
    check_id="kafka-replicas-out-of-sync",
    harm=by_severity(Harm.CUT_OFF, Harm.AT_RESTART),
    order=20,
    title="Replicas on a Kafka broker are out of sync, or the broker is down",
    headlines={Harm.CUT_OFF: "KAFKA PARTITIONS NOT SERVED: replicas are out of sync"},
    advice=(
        "See which: `kafka-topics.sh --bootstrap-server SERVERS --describe --under-replicated-partitions`.",
        "See which nobody can use: `kafka-topics.sh --bootstrap-server SERVERS --describe --unavailable-partitions`.",
        f"See which have too few for `acks=all`: `{SHORT}`.",
        "Start the broker again if it is down; its log tells why it ended, and disks that failed.",
        f"A broker that runs: see whether partitions are just being moved to it (`{REASSIGN} --list`).",
        "A broker that runs and stays behind: see its disks, its network, and `num.replica.fetchers`.",
        "A broker that is gone for good: have Cruise Control place its replicas elsewhere (`remove_broker`).",
        f"Or move them by hand: `{REASSIGN} --reassignment-json-file FILE --execute`.",
    ),
    beware={Harm.CUT_OFF: "No unclean election while the replica in sync can come back: messages would be lost."},
    source="docs/kafka.md",
    policy=KafkaReplicasOutOfSyncPolicy,
    cluster={
        "found": Query(OUT, worst_first="critical desc, out desc, broker"),
        "partitions": Query("select count(*) as partitions from kafka_partitions"),
    },
    severity=critical_or_warning,
    subject="broker",
    evidence=_evidence,
    figures=("leaderless", "out", "replicas", "short"),
    quiet=lambda queried, _context: (
        f"All replicas of {counted(queried['partitions'].one['partitions'], 'partition')} are in sync."
    ),
    system=System.KAFKA,
)


class KafkaReplicasFlappingPolicy(Section):
    """When replicas count as coming and going."""

    minimum_changes: int = number(
        2, "replicas of one broker that left since the look before, and as many that came back"
    )
    window_minutes: int = number(WINDOW_MINUTES, WINDOW)


_RUNNING = """
select topic, partition, id from kafka_replicas join kafka_brokers using (id) where listed and not in_sync
"""

CHANGED = f"""
select coalesce(now_out.id, before_out.id) as id, count(*) filter (before_out.id is null) as gone,
    count(*) filter (now_out.id is null) as back
from now_out full join ({_RUNNING}) before_out using (topic, partition, id) group by 1
"""


def judge_flapping(queried: Queried, context: CheckContext[KafkaReplicasFlappingPolicy]) -> Judgement:
    """A warning for a broker that runs, of whose replicas some left and others came back since the look before."""
    limits = context.limits
    looks = within(context.about, limits.window_minutes)
    if not looks:
        return Judgement(cannot_tell=too_few(1, 2, limits.window_minutes))
    before = looks[0].taken_at
    found = []
    for row in sorted(by_time(queried["changed"].rows).get(before, ()), key=lambda row: -min(row["gone"], row["back"])):
        if min(row["gone"], row["back"]) < limits.minimum_changes:
            continue
        name = f"broker {row['id']}"
        found.append(
            FLAPPING.finding(
                severity=Severity.WARNING,
                subject=name,
                evidence=(
                    f"Since {time_in_words(before)}, {counted(row['gone'], 'replica')} on {name} fell out of sync, and"
                    f" {row['back']:,} others came back: it runs, and cannot keep up."
                ),
                figures={"gone": row["gone"], "back": row["back"]},
            )
        )
    return Judgement(
        findings=tuple(found),
        quiet=f"Since {time_in_words(before)} no broker's replicas fell out of sync and came back.",
    )


FLAPPING = Check(
    check_id="kafka-replicas-flapping",
    harm=Harm.SLOW,
    order=25,
    title="Replicas on a Kafka broker fall out of sync and come back",
    advice=(
        "See the broker's disks, network and garbage collections at these times.",
        "See whether one topic writes more than its followers can fetch: raise `num.replica.fetchers`, or spread it.",
        "See `replica.lag.time.max.ms` (30 s by default): a follower that is behind for longer is out of sync.",
        "Have Cruise Control move replicas away from it, in a dry run first (`rebalance?dryrun=true`).",
    ),
    explained_by=("kafka-replicas-out-of-sync",),
    source="docs/kafka.md",
    policy=KafkaReplicasFlappingPolicy,
    shards={"now_out": Query(_RUNNING, small=True)},
    earlier={"changed": looking_back(CHANGED, small=True)},
    judge=judge_flapping,
    system=System.KAFKA,
)
