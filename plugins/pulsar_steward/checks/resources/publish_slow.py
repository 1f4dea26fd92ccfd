"""Slow publishing, by broker and topic, with the causes that other checks on the same snapshot show.

Producers see this as latency and time-outs. Brokers do not know when a client gave up. Entries pending in two
snapshots, minutes apart, have outlived the 30 s after which clients give up by default.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, brokers_of, silent_in
from pulsar_steward.checks.clients.rates import AT_PUBLISH_RATE, published_words
from pulsar_steward.checks.earlier import LOOKS, PERIOD, looking_back, of_previous
from pulsar_steward.checks.resources.publish_causes import BOOKIES, RESTS_ON, CausesOfSlowness
from pulsar_steward.checks.resources.slowness import (
    PROCESSES,
    PUBLISHES,
    READ_ONLY,
    SLOWS_A_PROCESS,
    SlowEventsPolicy,
    of_event,
    slow_before,
    slow_figures,
    slow_of,
    slow_words,
)
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.measures import WRITES_OVER_A_SECOND, WRITES_UNDER_A_SECOND
from pulsar_steward.model.section import percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row

MAX_SLOWEST = 3
"""Maximum number of topics named in one sentence."""

LEAST_WRITES_PERCENT = 10
"""Slow writes to bookies, in percent of equally slow entries; below it, nearly all entries wait for something else."""


class PublishSlowPolicy(SlowEventsPolicy):
    """Thresholds for the time that brokers take to publish an entry, as brokers measure it."""

    warning_topic_stalled_percent: int = percent(
        5, "entries of one topic over a second, of its messages, where two snapshots in a row show it"
    )


SLOW = slow_of("publishes", "slow_before")
"""Brokers on which publishing is slow."""

LIMITED = f"select worst.*, publish_rate from worst left join {AT_PUBLISH_RATE} using (topic)"
"""Adds the publish rate that a topic is at; null: it is at none."""

WAITING = f"select count(*) as topics, min(topic) as topic from {AT_PUBLISH_RATE}"
"""Number of topics at their publish rates, slow or not, with one of them."""

LIMITED_PERCENT = 50
"""Slow entries of topics at their publish rates, in percent of a broker's; from it on, that limit comes first."""

MAX_TOPICS = 1000
"""Maximum number of topics that are looked at, the slowest first."""

SLOWEST_FIRST = "stalled desc, slow desc, topic, source"


def _slow_entries(samples: str) -> str:
    """SQL for topics with entries over 200 ms (`slow`) and over a second (`stalled`) in the last statistics period."""
    return f"""
    select source, topic, sum(value order by value) as slow,
        coalesce(sum(value order by value) filter (series = '{WRITES_OVER_A_SECOND}'), 0) as stalled
    from {samples}
    where series in ('{WRITES_UNDER_A_SECOND}', '{WRITES_OVER_A_SECOND}') and topic is not null and isfinite(value)
        and value > 0
    group by source, topic
    """


SLOW_TOPICS = f"""
select told.*, namespace, bundle, message_rate_in as rate
from ({_slow_entries("metrics")}) told join user_topics using (topic) where broker = source
"""

SLOW_TOPICS_BEFORE = f"""
with told as (select * from metrics semi join (select topic from slow_topics where stalled > 0) using (topic))
select topic, stalled, message_rate_in as rate
from ({_slow_entries("told")}) join raw_topics using (topic) where broker = source
"""

_PERIOD = f"coalesce((select max(try_cast(trim(value) as double)) from setting('{PERIOD}')), 60)"

# A share of messages. An entry has one or more messages, so the share of entries is at least as high. Where the rate is
# unknown, so is the share.
_MANY = f"""
stalled * 60 >= $minimum_stalled_writes_per_minute * {_PERIOD}
    and stalled * 100 >= $warning_topic_stalled_percent * rate * {_PERIOD}
"""

TOPICS = f"""
with still as (select distinct topic from {of_previous("slow_topics_before")} where {_MANY})
select slow_topics.*, stalled * 60 / {_PERIOD} as stalled_per_minute, rate * 60 as messages_per_minute
from slow_topics semi join still using (topic) anti join (select source from slow where rank > 0) using (source)
where {_MANY}
"""
"""Topics with slow publishing in two snapshots in a row, on brokers that are not slow as a whole."""


def judge(queried: Queried, context: CheckContext[PublishSlowPolicy]) -> Judgement:
    """Judges brokers by the share and the time of slow entries, and by hanging ones; then single topics."""
    publishing = (row["source"] for row in queried["publishes"].rows if row["rate"] > 0)
    causes = CausesOfSlowness.among(context.results, publishing, queried)
    writes = _Writes(context)
    found = list(_brokers(queried, writes, causes))
    found += list(_topics(queried, writes, causes, frozenset(each.subject for each in found)))
    rows, topics, missing = queried["publishes"].rows, queried["single"], None
    if silent := brokers_of(queried["silent"]):
        missing = f"The snapshot has no latencies of publishing on {named(silent)}."
    elif not any(row["rate"] > 0 for row in rows):
        missing = "Nothing was published in the last minute, so nothing is known of how long it takes."
    slow = max((row["slow_percent"] for row in rows), default=0.0)
    published = counted(math.fsum(row["rate"] for row in rows), "entry", "entries")
    # Producers may wait for a limit however quick brokers are.
    waiting = [row for row in queried["waiting"].rows if row["topics"]]
    wait = ""
    if waiting:
        first = min(row["topic"] for row in waiting)
        producers = f"Producers of {counted(sum(row['topics'] for row in waiting), 'topic')}, such as {first}"
        wait = f" {producers}, wait all the same, for a publish rate (limit-reached)."
    return Judgement(
        findings=tuple(found),
        more=topics.more,
        graded=topics.more_by(Severity.WARNING),
        quiet=(f"Of {published} published a second, at most {slow:.1f} % on any broker took over 200 ms.{wait}"),
        cannot_tell=missing,
    )


class _Writes:
    """Writes to bookies, as `bookie-thread-busy` sees them; `hanging`: brokers with entries pending twice."""

    def __init__(self, context: CheckContext[PublishSlowPolicy]) -> None:
        queried = context.results[BOOKIES].queried
        told, stuck = queried.get("writes"), queried.get("stuck")
        self._latencies = {row["source"]: row for row in (told.rows if told else ())}
        self.hanging = {row["source"]: row for row in (stuck.rows if stuck else ()) if row["rank"]}

    def are_quick(self, broker: str, entries: Mapping[str, float]) -> bool:
        """True if slow writes are hardly any of the equally slow entries, over 200 ms and over a second.

        Writes too few for a finding count too. False if entries hang, as these are in no latency, or if no latency is
        known.

        Args:
            broker: The broker.
            entries: Slow entries per second, by the column that counts such writes.
        """
        writes = self._latencies.get(broker)
        if writes is None or broker in self.hanging:
            return False
        return all(writes[each] * 100 < LEAST_WRITES_PERCENT * rate for each, rate in entries.items() if rate)


def _brokers(queried: Queried, writes: _Writes, causes: CausesOfSlowness) -> Iterator[Finding]:
    """Brokers with slow entries, the slowest first, then brokers with hanging entries only."""
    slow = {row["source"]: row for row in queried["slow"].rows}
    slowest_first = sorted(slow.values(), key=lambda row: (-row["lost_percent"] - row["slow_percent"], row["source"]))
    for broker in dict.fromkeys((*(row["source"] for row in slowest_first), *sorted(writes.hanging))):
        row = slow.get(broker)
        entries = {each: row[each] for each in ("slow_rate", "stalled_rate")} if row else {}
        topics = [each for each in queried["slow_topics"].rows if each["source"] == broker]
        cause = causes.in_words(broker, writes_are_quick=writes.are_quick(broker, entries), limit=_limit(topics, row))
        sentences: list[str] = []
        figures: dict[str, int] = {}
        if row is not None:
            published = f"{counted(row['rate'], 'entry', 'entries')} a second published on broker {broker}"
            sentences.append(f"{slow_words(row, published, 'publishing')}.")
            figures = slow_figures(row, "publishes_per_second")
        hanging = writes.hanging.get(broker)
        if hanging is not None:
            sentences.append(
                f"Entries of {counted(hanging['stuck'], 'topic')} on broker {broker} wait in this snapshot and in the"
                " one before: publishing hangs there, and clients give up after 30 s by default."
            )
            figures["topics_stuck"] = hanging["stuck"]
        if slowest := topics[:MAX_SLOWEST]:
            told = (f"{each['topic']} ({counted(each['slow'], 'entry', 'entries')} over 200 ms)" for each in slowest)
            sentences.append(f"Slowest topics: {', '.join(told)}.")
        yield CHECK.finding(
            severity=tuple(Severity)[max(each["rank"] for each in (row, hanging) if each is not None)],
            subject=broker,
            evidence=" ".join((*sentences, cause)),
            figures=figures,
        )


def _limit(topics: Sequence[Row], broker: Row | None = None) -> str | None:
    """The limit of the slowest topic at its publish rate, if such topics have most slow entries; None: they do not.

    Not all topics tell their slow entries, so those of the broker count too, by its rates of a minute.
    """
    limited = [each for each in topics if each["publish_rate"]]
    of_broker = broker["slow_rate"] * 60 if broker is not None else 0.0
    slow = max(math.fsum(each["slow"] for each in topics), of_broker)
    if not limited or math.fsum(each["slow"] for each in limited) * 100 < LIMITED_PERCENT * slow:
        return None
    return f"{limited[0]['topic']} {published_words(limited[0]['publish_rate'])}."


def _topics(queried: Queried, writes: _Writes, causes: CausesOfSlowness, found: frozenset[str]) -> Iterator[Finding]:
    """Slow topics; `found` are the brokers with a finding of their own, which are not quick."""
    for row in queried["single"].rows:
        broker = row["source"]
        stalled = {"stalled_rate": row["stalled_per_minute"] / 60}
        cause = causes.in_words(broker, writes_are_quick=writes.are_quick(broker, stalled), limit=_limit([row]))
        but = "" if broker in found else "; the broker as a whole is quick"
        yield CHECK.finding(
            severity=Severity.WARNING,
            subject=row["topic"],
            evidence=(
                f"Of about {counted(row['messages_per_minute'], 'message')} a minute published to {row['topic']} on"
                f" broker {broker}, {counted(row['stalled_per_minute'], 'entry', 'entries')} took over a second, as in"
                f" the snapshot before{but}. {cause}"
            ),
            figures={
                "messages_per_minute": int(row["messages_per_minute"]),
                "over_second_per_minute": int(row["stalled_per_minute"]),
            },
        )


CHECK = Check(
    check_id="publish-slow",
    harm=Harm.SLOW,
    explained_by=(*SLOWS_A_PROCESS, "bookie-thread-busy", "metadata-latency", "limit-reached"),
    order=5,
    title="Publishing is slow: producers see latency and time-outs",
    advice=(
        "Begin with the cause that is named first: its own check says what to do (`steward explain CHECK_ID`).",
        "A publish rate: ask who set the limit, and raise it, before you look at bookies.",
        "Where none is named: `jstack PID` of that broker, three times, 10 s apart, and `top -H -p PID`.",
        "Where one topic is slow: `pulsar-admin topics stats-internal TOPIC` (state, pendingAddEntriesCount).",
        "Where brokers are quick and producers still time out: look at the client's CPU, logging and network.",
    ),
    source="docs/knowledge.md C: why producing timed out",
    policy=PublishSlowPolicy,
    shards={
        "publishes": Query(of_event(PUBLISHES)),
        "slow_topics": Query(SLOW_TOPICS, worst_first=SLOWEST_FIRST, most=MAX_TOPICS, detail=LIMITED),
        "waiting": Query(WAITING),
        "processes": Query(PROCESSES),
        "read_only": Query(READ_ONLY),
    },
    earlier={
        "looks": LOOKS,
        "slow_before": looking_back(slow_before("publishes", PUBLISHES)),
        "slow_topics_before": looking_back(SLOW_TOPICS_BEFORE),
    },
    cluster={"slow": Query(SLOW), "single": Query(TOPICS, worst_first=SLOWEST_FIRST), "silent": silent_in("publishes")},
    judge=judge,
    rests_on=RESTS_ON,
)
