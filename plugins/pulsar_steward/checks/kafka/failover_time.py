"""What a lost Kafka broker would stop: partitions that another one can lead for a time, others until it is back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.kafka import ELECTION, REASSIGN
from pulsar_steward.checks.kafka.sizes import SIZES, STORE_UNKNOWN, size_in, stores_in
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.kafka_size import KafkaRates, estimate
from pulsar_steward.model.section import number
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried
    from pulsar_steward.model.kafka_size import KafkaOutage


class KafkaFailoverTimePolicy(KafkaRates):
    """Thresholds for the time without a leader, and the rates that estimates assume."""

    warning_seconds: int = number(30, "until the last partition has a leader: the default of `request.timeout.ms`")
    critical_seconds: int = number(120, "the default of `delivery.timeout.ms`: producers give up")
    warning_partitions_alone: int = number(1, "led by one broker, with no other replica in sync")


LED = "select broker, leads, alone, example from kafka_held where listed"

SESSION = "select max(try_cast(trim(value) as bigint)) // 1000 as seconds from setting('broker.session.timeout.ms')"


def judge(queried: Queried, context: CheckContext[KafkaFailoverTimePolicy]) -> Judgement:
    """Judges each broker by the partitions that it leads."""
    limits, sizes = context.limits, queried["sizes"].one
    session = queried["session"].one["seconds"]
    rates = limits if session is None else limits.model_copy(update={"broker_session_seconds": session})
    led = sorted(queried["led"].rows, key=lambda row: (-row["alone"], -row["leads"], row["broker"]))
    if not led:
        return Judgement(cannot_tell="The cluster lists no broker.")
    store = stores_in(sizes)[0] if sizes["by_zookeeper"] is not None else None
    found, words = [], []
    for row in led:
        parts, figures = [], {"leaders": row["leads"], "alone": row["alone"]}
        severity = Severity.WARNING if row["alone"] >= limits.warning_partitions_alone else None
        if row["alone"]:
            parts.append(
                f"{counted(row['alone'], 'partition')} with no other replica in sync, such as {row['example']}, would"
                " be gone until it is back"
            )
        others = row["leads"] - row["alone"]
        if store is None:
            parts.append(f"for how long {counted(others, 'partition')} would have no leader is not known")
        elif others or not parts:
            cost = estimate(size_in(sizes, store, others), rates)
            lost, both = cost.broker_lost, cost.both_lost.seconds
            severity = (
                Severity.beyond(lost.seconds, warning=limits.warning_seconds, critical=limits.critical_seconds)
                or severity
            )
            figures |= {"lost_seconds": lost.seconds, "lost_with_controller_seconds": both}
            parts.append(
                f"{counted(others, 'partition')} would have no leader for up to {seconds_in_words(lost.seconds)}:"
                f" {_parts(lost)}; together with the controller: {seconds_in_words(both)}"
            )
        words.append(f"Without {row['broker']}, {'; '.join(parts)}.")
        if severity is not None:
            found.append(CHECK.finding(severity=severity, subject=row["broker"], evidence=words[-1], figures=figures))
    return Judgement(findings=tuple(found), quiet=words[0], cannot_tell=None if store is not None else STORE_UNKNOWN)


def _parts(outage: KafkaOutage) -> str:
    return f"{outage.noticed:,.0f} s until it is missed, {outage.elected:,.1f} s until all have new leaders"


CHECK = Check(
    check_id="kafka-failover-time",
    harm=Harm.AT_RESTART,
    order=50,
    title="A lost Kafka broker would leave partitions without a leader for long, or until it is back",
    advice=(
        f"Partitions of one replica: give them more (`{REASSIGN} --reassignment-json-file FILE --execute`).",
        f"Spread leaders: `{ELECTION}`, or Cruise Control.",
        "Stop brokers orderly (`controlled.shutdown.enable`, on by default): leaders move away first.",
        "See how long a broker may be silent: `broker.session.timeout.ms` of the controllers.",
        "Producers hold out for `delivery.timeout.ms` (2 min by default): see that theirs is longer than this.",
    ),
    source="docs/kafka.md; docs/knowledge.md E",
    policy=KafkaFailoverTimePolicy,
    cluster={"led": Query(LED), "session": Query(SESSION), "sizes": Query(SIZES)},
    judge=judge,
    system=System.KAFKA,
)
