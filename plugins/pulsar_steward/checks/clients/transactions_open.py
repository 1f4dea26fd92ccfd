"""Transactions that stay open or time out, that keep processors busy, and coordinators that do not respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import BROKERS_READ, Check, Judgement, Query, brokers_of, nothing_read
from pulsar_steward.checks.earlier import (
    LOOKS,
    ComparingPolicy,
    apart,
    by_time,
    looking_back,
    of_previous,
    within,
)
from pulsar_steward.model.bundles import tc_topic
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.checks.check import CheckContext, Queried

OPEN = "pulsar_txn_active_count"
OPENED = ("pulsar_txn_created_total", "pulsar_txn_created_count")
TIMED_OUT = ("pulsar_txn_timeout_total", "pulsar_txn_timeout_count")
"""Counters by their names in 4.0 and in 2.10."""


class TransactionsOpenPolicy(ComparingPolicy):
    """Thresholds for transactions that stay open, and for transactions that time out."""

    warning_minutes: int = number(
        30, "that a transaction stays open: consumers of its topics get nothing that was published after it"
    )
    minimum_timed_out_transactions: int = number(100, "transactions; fewer are clients that restarted")
    warning_timed_out_percent: int = percent(
        5, "transactions that the coordinators aborted, of all that were opened meanwhile"
    )
    circling_cpu_percent: int = percent(
        50, "of a broker's processors busy in two snapshots, three times those of one with at least half its traffic"
    )


TOLD = f"""
with processes as (
    select source, max(value) as started from metrics where series = '{STARTED}' group by source)
select source as broker, labels_json->>'coordinator_id' as coordinator, max(started) as started,
    max(value) filter (series = '{OPEN}')::bigint as open,
    max(value) filter (series in {OPENED})::bigint as opened,
    max(value) filter (series in {TIMED_OUT})::bigint as timed_out
from metrics left join processes using (source)
where source_kind = 'broker' and series in {(OPEN, *OPENED, *TIMED_OUT)} and isfinite(value)
group by broker, coordinator having coordinator is not null
"""

# At least this many of the transactions open then are still open: the rest of the open ones were opened since. A
# coordinator counts from 0 when it is loaded: after a move, or a restart of its broker, nothing is known.
SINCE = """
select coordinator, broker, now.open, taken_at, ($now - epoch(taken_at))::bigint as seconds,
    now.opened - older.opened as opened, now.timed_out - older.timed_out as timed_out,
    least(older.open, now.open - (now.opened - older.opened)) as lasting
from told now join told_before older using (broker, coordinator)
where abs(now.started - older.started) < 2 and now.opened >= older.opened and now.timed_out >= older.timed_out
"""
LASTING = """
select * from since where lasting > 0 and seconds >= 60 * $warning_minutes
qualify row_number() over (partition by coordinator order by seconds desc, broker) = 1
"""
ENDED = """
select * from since
qualify row_number() over (partition by coordinator order by seconds desc, broker) = 1
"""
IN_ALL = """
select coalesce(sum(opened), 0)::bigint as opened, coalesce(sum(timed_out), 0)::bigint as timed_out,
    min(taken_at) as since
from ended
"""
ONGOING = """
select source as broker, count(*) as topics, sum(value)::bigint as open, min(topic) as topic from metrics
where series = 'pulsar_txn_tb_active_total' and source_kind = 'broker' and value > 0 and of_users(topic)
group by source
"""

# A consumer at the tail waits for what is behind an open transaction. Before apache/pulsar#23189 its broker tries to
# read that without a pause (apache/pulsar#22943), which is in no rate.
CIRCLING = f"""
with busy as (
    select ongoing.*, now.cpu_percent, now.throughput_in_bytes,
        least(now.cpu_percent, previous.cpu_percent) as least_percent
    from ongoing join brokers now using (broker) join {of_previous("loads_before")} previous using (broker))
select busy.*, peer.broker as peer, peer.cpu_percent as peer_percent
from busy join (from brokers anti join ongoing using (broker)) peer
    on peer.throughput_in_bytes * 2 >= busy.throughput_in_bytes and peer.cpu_percent * 3 <= least_percent
where least_percent >= $circling_cpu_percent
qualify row_number() over (partition by busy.broker order by peer.cpu_percent, peer.broker) = 1
"""
"""Brokers whose processors their traffic does not explain, with the calmest comparable one without transactions."""

SILENT = "select broker from brokers where read and metrics_read is distinct from true"


def judge(queried: Queried, context: CheckContext[TransactionsOpenPolicy]) -> Judgement:
    """At most one finding about all transactions, and one for each coordinator that does not respond."""
    if not context.about.coordinators:
        return Judgement(quiet="Transactions are off: there are no coordinators.")
    found = (*_of_all(queried, context), *_unanswered(queried, context), *_circling(queried))
    told, since = queried["told"].rows, queried["in_all"].one["since"]
    open_now = sum(row["open"] or 0 for row in told)
    least = counted(context.limits.warning_minutes, "minute")
    silent = named(brokers_of(queried["silent"]))
    unread = f"The metrics of {silent} were not read, or not to their end." if silent else None
    cannot_tell = nothing_read(queried) or unread
    if not told:
        return Judgement(findings=found, quiet="No client uses transactions.", cannot_tell=cannot_tell)
    words = f"{counted(open_now, 'transaction is', 'transactions are')} open"
    if cannot_tell is None and open_now and since is None:
        cannot_tell = f"{words}; since when, only an earlier snapshot tells."
    return Judgement(findings=found, quiet=f"{words}, none known to be for {least}.", cannot_tell=cannot_tell)


def _of_all(queried: Queried, context: CheckContext[TransactionsOpenPolicy]) -> Iterator[Finding]:
    """A finding if transactions stay open, or too many time out."""
    lasting, ended = queried["lasting"].rows, queried["in_all"].one
    too_many = ended["timed_out"] >= context.limits.minimum_timed_out_transactions and (
        100 * ended["timed_out"] >= context.limits.warning_timed_out_percent * ended["opened"]
    )
    if not lasting and not too_many:
        return
    words = []
    if lasting:  # the coordinator that has most of them comes first
        worst, least = lasting[0], seconds_in_words(min(row["seconds"] for row in lasting), rounded=True)
        some = counted(sum(row["lasting"] for row in lasting), "transaction")
        words.append(
            f"At least {some} of {counted(len(lasting), 'coordinator')} have been open for {least} or longer: consumers"
            f" of their topics get nothing that was published after them. Coordinator {worst['coordinator']} on"
            f" {worst['broker']} has {worst['open']:,} open, and opened {worst['opened']:,} since"
            f" {time_in_words(worst['taken_at'])}."
        )
    if too_many:
        those = counted(ended["timed_out"], "transaction")
        words.append(f"Since {time_in_words(ended['since'])} {those} timed out, {ended['opened']:,} were opened.")
    yield CHECK.finding(
        severity=Severity.WARNING,
        subject=context.about.cluster,
        evidence=" ".join(words),
        figures={
            "coordinators": len(lasting),
            "open": sum(row["open"] or 0 for row in queried["told"].rows),
            "opened": ended["opened"],
            "staying_open": sum(row["lasting"] for row in lasting),
            "staying_seconds": max((row["seconds"] for row in lasting), default=0),
            "timed_out": ended["timed_out"],
        },
    )


def _unanswered(queried: Queried, context: CheckContext[TransactionsOpenPolicy]) -> Iterator[Finding]:
    """A finding for each coordinator that no broker reports, now and in the snapshot before, though others work."""
    about, told = context.about, {row["coordinator"] for row in queried["told"].rows}
    earlier = within(about, context.limits.window_minutes)
    whole_before = (each.taken_at for each in earlier if not each.partial and apart(about.taken_at, each.taken_at))
    previous = next(whole_before, None)
    if previous is None:
        return
    before = by_time(queried["told_before"].rows).get(previous, [])
    whole = not about.unread and not about.metrics_cut_off and not queried["silent"].rows
    if not whole or not told or not before or not queried["in_all"].one["opened"]:
        return
    seen = told | {row["coordinator"] for row in before}
    for coordinator in range(about.coordinators):
        if str(coordinator) not in seen:
            yield CHECK.finding(
                severity=Severity.CRITICAL,
                subject=tc_topic(coordinator),
                evidence=(
                    f"No broker tells of transaction coordinator {coordinator}, now or in the snapshot of"
                    f" {time_in_words(previous)}, while {counted(len(told), 'other is', 'others are')} told of and"
                    " transactions are opened. Clients take all coordinators in turn: those that come to this one wait."
                ),
                figures={"coordinator": coordinator, "coordinators": about.coordinators, "told_of": len(told)},
            )


def _circling(queried: Queried) -> Iterator[Finding]:
    """A finding for each broker that seems to read in circles."""
    for row in queried["circling"].rows:
        yield CHECK.finding(
            severity=Severity.WARNING,
            subject=row["broker"],
            evidence=(
                f"Broker {row['broker']} has {row['cpu_percent']:.0f} % of its processors busy, and {row['peer']} with"
                f" at least half its traffic {row['peer_percent']:.0f} %: traffic does not explain it. On it"
                f" {counted(row['topics'], 'topic has', 'topics have')} {counted(row['open'], 'open transaction')} in"
                f" all, such as {row['topic']}. For consumers at the tail of such topics, brokers before"
                " apache/pulsar#23189 try to read again and again; the load goes along with a bundle."
            ),
            figures={
                "cpu_percent": int(row["cpu_percent"]),
                "open": row["open"],
                "topics": row["topics"],
            },
        )


CHECK = Check(
    check_id="transactions-open",
    harm=Harm.SLOW,
    order=17,
    title="Transactions stay open, time out, wait for a coordinator, or keep processors busy",
    advice=(
        "Stay open: `pulsar-admin transactions slow-transactions -t 30m` names them, with the topics that they hold.",
        "End one that nobody will end: `pulsar-admin transactions abort-transaction -m M -l L` (its two parts).",
        "Time out: clients that die, or work for longer than the time-out that they ask for.",
        "Processors that they keep busy: upgrade to a version with apache/pulsar#23189, or end transactions sooner.",
        "A coordinator that answers nobody: look for __transaction_log_N in the log of its bundle's owner.",
        "Unloading that bundle has another broker load its log.",
    ),
    source="docs/knowledge.md A; docs/checks/transactions-open.md",
    policy=TransactionsOpenPolicy,
    shards={"told": Query(TOLD), "ongoing": Query(ONGOING)},
    earlier={
        "looks": LOOKS,
        "told_before": looking_back(TOLD),
        "loads_before": looking_back("select broker, cpu_percent from brokers where read", small=True),
    },
    cluster={
        "read": BROKERS_READ,
        "since": Query(SINCE),
        "lasting": Query(LASTING, worst_first="lasting desc, coordinator"),
        "ended": Query(ENDED),
        "in_all": Query(IN_ALL),
        "silent": Query(SILENT),
        "circling": Query(CIRCLING, worst_first="least_percent desc, broker"),
    },
    judge=judge,
)
