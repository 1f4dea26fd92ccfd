"""Patterns of log messages by which operators recognise a problem, each for the class that writes it.

The messages are those of Pulsar 4.0, BookKeeper 4.17 and ZooKeeper 3.9. A message counts only from the class that
writes it, as names that clients choose occur in messages of other classes.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_steward.checks.check import CheckWords
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.trouble import Harm, HarmOf, by_severity

SECTION = "Logs and thread dumps"
"""Title of the last section of the guide."""

PAGE = "logs"
"""Name of their page in ``docs/checks``."""

_SOURCE = "docs/checks/logs.md; docs/knowledge.md C: the guide, step five"


@dataclass(frozen=True)
class Pattern:
    """One kind of message.

    Attributes:
        words: Meaning of such a message, as a clause.
        loggers: Classes that write it, with blanks between; empty: any class, for errors of Java itself.
        message: Regular expression to find in the message. The group ``took``, if there is one, is a duration.
        severity: Severity of a finding.
        least: Number in one file from which it has this severity; fewer are information.
        seconds: Unit of the group ``took``, in seconds.
    """

    words: str
    loggers: str
    message: str
    severity: Severity = Severity.WARNING
    least: int = 1
    seconds: float = 1.0


@dataclass(frozen=True, kw_only=True)
class LogCheck(CheckWords):
    """A check of logs: patterns with a common advice.

    Attributes:
        patterns: Messages that it looks for; empty if it needs more than a message.
        of_dumps: True if it looks at thread dumps.
    """

    patterns: tuple[Pattern, ...] = ()
    of_dumps: bool = False

    def finding(self, severity: Severity, subject: str, evidence: str, figures: dict[str, int]) -> Finding:
        """A finding of this check."""
        return Finding(check_id=self.check_id, severity=severity, subject=subject, evidence=evidence, figures=figures)


_HARMS: dict[str, HarmOf] = {
    **dict.fromkeys(
        ("log-bundles-not-loaded", "log-topics-fenced", "log-bookies"), by_severity(Harm.CUT_OFF, Harm.SLOW)
    ),
    **dict.fromkeys(("log-quota", "log-cursors"), Harm.AT_RESTART),
    "log-delayed-buckets": Harm.SOON,
    **dict.fromkeys(("log-memory", "log-ledger-switch", "log-metadata-store", "log-slow-tasks"), Harm.SLOW),
    **dict.fromkeys(("log-thread-dump", "log-connections-dropped", "log-too-many-requests"), Harm.SLOW),
    "log-clients-reconnect": Harm.SLOW,
}


def _check(check_id: str, title: str, advice: tuple[str, ...], *patterns: Pattern, of_dumps: bool = False) -> LogCheck:
    harm = _HARMS.get(check_id, Harm.SETTING)
    return LogCheck(
        check_id=check_id, title=title, advice=advice, source=_SOURCE, patterns=patterns, of_dumps=of_dumps, harm=harm
    )


_BUCKETS = "Bucket BucketDelayedDeliveryTracker ImmutableBucket MutableBucket BookkeeperBucketSnapshotStorage"

DUMPS = _check(
    "log-thread-dump",
    "Threads that serve clients are stuck or busy (thread dump)",
    (
        "Take two more dumps ten seconds apart and give all of them: what stands still in each is stuck.",
        "A deadlock, or a future that nobody completes, is a defect: keep the dump for a report, restart that broker.",
        "Threads that are merely busy: give the broker more of them (`numIOThreads`), or fewer clients.",
    ),
    of_dumps=True,
)

CLIENTS = _check(
    "log-clients-reconnect",
    "Clients connect or subscribe anew again and again (log)",
    (
        "See whether a deployment explains it; then it is over.",
        "Look at that host: CPU that is used up, containers that restart, one client made for each message.",
        "See which version its clients have (check client-versions): Java 2.6.2 makes consumers anew without end.",
    ),
)

DEBUG = _check(
    "log-debug",
    "A process logs at DEBUG",
    (
        "Set its loggers to INFO (`conf/log4j2.yaml`, `PULSAR_LOG_LEVEL`), and those of clients (`org.apache.pulsar`).",
        "Then measure the publish latency again: at a high rate DEBUG stretched milliseconds to seconds.",
    ),
)

OTHERS = _check(
    "log-errors",
    "Errors that none of the other checks of logs knows",
    ("Read them together with what was changed last, and with the clients' logs of the same minutes.",),
)

FILES = _check(
    "log-files",
    "Files of --logs that could not be read, or in no format that is known",
    ("Known formats are listed in docs/checks/logs.md; an archive that was cut off can be unpacked by hand.",),
)

_BY_MESSAGE = (
    _check(
        "log-connections-dropped",
        "Connections were closed because nothing came through them in time (log)",
        (
            "Take three thread dumps of that broker (`jstack PID`), ten seconds apart, and give them by --logs too.",
            "Look at GC and CPU of the broker and of the clients' hosts: who stands still is not heard.",
        ),
        Pattern("no answer to keep-alives", "PulsarHandler", r"^.{0,300}Forcing connection to close after keep-alive"),
        Pattern("handshakes too slow", "PulsarHandler", r"^.{0,300}Pulsar Handshake was not completed within timeout"),
        Pattern(
            "no answer to connection checks", "ServerCnx", r"Connection check timed out(?:\.|,) [Cc]losing connection"
        ),
    ),
    _check(
        "log-too-many-requests",
        "Requests or connections were refused as too many (log)",
        (
            "Find the clients: those that look up or connect for each message, and Go ones, which reconnect for it.",
            "Only then raise `maxConcurrentLookupRequest`, `brokerMaxConnections`, or ZooKeeper's `maxClientCnxns`.",
        ),
        Pattern("lookups refused", "ServerCnx", r"due to too many lookup-requests"),
        Pattern(
            "connections refused",
            "DefaultConnectionController ConnectionController$DefaultConnectionController ConnectionController",
            r"^Reject connect request from .{0,200} reached the maximum number of",
        ),
        Pattern("requests refused by a bookie", "BookieRequestProcessor", r"Too many pending requests"),
        Pattern("requests refused by bookies", "ManagedLedgerImpl", r"Too many request error from bookies"),
        Pattern(
            "connections refused by ZooKeeper", "NIOServerCnxnFactory NettyServerCnxnFactory", r"^Too many connections"
        ),
    ),
    _check(
        "log-bundles-not-loaded",
        "Clients ask for topics of bundles that no broker may load (log)",
        (
            "See which brokers may have the namespace: `pulsar-admin ns-isolation-policy list CLUSTER`.",
            "Start the brokers of its group, or take a mistaken policy back: clients come back by themselves.",
        ),
        Pattern(
            "lookups that found no broker",
            "NamespaceService",
            r"^No broker is available(?:$| \{| for \S+/0x)",
            least=10,
        ),
    ),
    _check(
        "log-slow-tasks",
        "A task held a thread that many topics share for over a second (log)",
        (
            "Take thread dumps meanwhile: they show what such a thread does.",
            "Look at GC first, then at the metadata store: most such tasks wait for one of them.",
        ),
        Pattern(
            "tasks too long",
            "OrderedExecutor",
            r"^(?:Runnable|Callable) (?:took too long to execute|.{1,300} took too long (?P<took>\d+) micros)",
            least=10,
            seconds=1e-6,
        ),
    ),
    _check(
        "log-ledger-switch",
        "Ledgers were not made, or entries not written, in time (log)",
        (
            "Look at ZooKeeper first: its disk, its GC, its `fsync` warnings (check log-metadata-store).",
            "Look at the bookies' number and health: a new ledger needs a whole ensemble.",
        ),
        Pattern(
            "ledgers not made in time",
            "ManagedLedgerImpl",
            r"[lL]edger creation timed-out|(?:\] |^)Timeout creating ledger"
            r"|Ledger creation was initiated (?:but it never|(?P<took>\d+) ms ago)",
            seconds=1e-3,
        ),
        Pattern(
            "ledgers not made",
            "ManagedLedgerImpl",
            r"^(?:\[[^\]]{0,500}\] Error creating ledger rc=(?!-6\b)|Error creating ledger(?:$| \{))",
        ),
        Pattern(
            "entries not written in time",
            "ManagedLedgerImpl",
            r"Failed to add entry (?:in time-out(?:$| \{)|\S+ in time-out (?P<took>\d+) sec)",
        ),
    ),
    _check(
        "log-bookies",
        "Bookies fail, are read-only, or are too few (log)",
        (
            "Make room on a full disk first: a bookie beyond `diskUsageThreshold` is read-only.",
            "See that more bookies are writable than an ensemble needs: `bookkeeper shell listbookies -rw`.",
            "Look at the log and the disks of the bookie that is named.",
        ),
        Pattern(
            "ledgers refused for lack of bookies",
            "ManagedLedgerImpl ManagedLedgerFactoryImpl ServerCnx BookieWatcherImpl",
            r"Error creating ledger rc=-6\b|Not enough non-faulty bookies available",
            Severity.CRITICAL,
        ),
        Pattern("no ensemble of bookies", "LedgerCreateOp", r"^Not enough bookies to create ledger", Severity.CRITICAL),
        Pattern(
            "no ensemble of bookies",
            "RackawareEnsemblePlacementPolicyImpl RegionAwareEnsemblePlacementPolicy",
            r"^Not enough .{0,50}bookies are available",
            Severity.CRITICAL,
        ),
        Pattern("a disk is full", "DiskChecker", r"^Space left on device .{1,500} > threshold", Severity.CRITICAL),
        Pattern("a bookie became read-only", "BookieStateManager", r"^Transitioning Bookie to ReadOnly mode"),
        Pattern(
            "writes to a read-only bookie",
            "WriteEntryProcessor WriteEntryProcessorV3",
            r"^BookieServer is running (?:in|as) readonly mode",
        ),
        Pattern("entries not written", "PendingAddOp", r"^Failed to write entry (?:\(|to bookie(?:$| \{|s, handling))"),
        Pattern("bookies in quarantine are used", "BookieWatcherImpl", r"^Not enough healthy bookies available"),
    ),
    _check(
        "log-topics-fenced",
        "Topics refuse clients, as they are fenced or still being unloaded (log)",
        (
            "For minutes: look at the bookies first; a topic whose writes fail fences itself, and tries again.",
            "Look for a second broker that owns the bundle, or for an unload that does not end.",
            "Unload the topic once its bookies are well; restart its broker only if that does not end.",
        ),
        Pattern(
            "producers refused by a fenced topic",
            "PersistentTopic AbstractTopic NonPersistentTopic",
            r"Attempting to add producer to a fenced topic",
            least=10,
        ),
        Pattern(
            "topics asked for while their bundle is unloaded",
            "BrokerService",
            r"^Namespace is being unloaded, cannot add topic",
            least=100,
        ),
    ),
    _check(
        "log-metadata-store",
        "The metadata store stands still, loses sessions, or is slow to write (log)",
        (
            "Give ZooKeeper's transaction log a disk of its own, and look at its GC and CPU.",
            "A broker whose session expired gives all of its topics away: look at its own GC as well.",
            "CancelledKeyException in ZooKeeper 3.4: upgrade it (ZOOKEEPER-2044); 3.6.3 cured it for others.",
            "Longer than its limit: compress ledger and cursor info; raise `jute.maxbuffer` everywhere, or nowhere.",
        ),
        Pattern(
            "sessions expired",
            "ZKSessionWatcher",
            r"^ZooKeeper session (?:expired|reconnection timeout)",
            Severity.CRITICAL,
        ),
        Pattern("connections to ZooKeeper lost", "ZKSessionWatcher", r"ZooKeeper client is disconnected\. Waiting"),
        Pattern(
            "slow writes of ZooKeeper",
            "FileTxnLog",
            r"^fsync-ing the write ahead log in .{1,100} took (?P<took>\d+)ms",
            seconds=1e-3,
        ),
        Pattern("connections broken by ZooKeeper", "NIOServerCnxn", r"java\.nio\.channels\.CancelledKeyException"),
        Pattern(
            "connections broken by an answer or request of ZooKeeper longer than its limit",
            "ClientCnxn NIOServerCnxn",
            r"java\.io\.IOException: (?:Packet len \d+ is out of range|Len error)",
        ),
    ),
    _check(
        "log-memory",
        "Memory ran out, or the whole process stood still for a collection (log)",
        (
            "After an OutOfMemoryError restart that process: what it failed at is not repaired.",
            "Give it more memory (`PULSAR_MEM`), or fewer topics and clients (checks gc-pressure, failover-time).",
        ),
        Pattern("memory ran out", "", r"java\.lang\.OutOfMemoryError|OutOfDirectMemoryError", Severity.CRITICAL),
        Pattern("full collections", "gc", r"Pause Full .{0,200} (?P<took>\d+\.\d+)ms|\[Full GC", seconds=1e-3),
    ),
    _check(
        "log-quota",
        "Backlog quotas were exceeded (log)",
        (
            "See which subscription is slow: check backlog-near-quota names it.",
            "Do not restart or move such a topic before its backlog is down: its producers could not come back.",
        ),
        Pattern(
            "producers refused",
            "PersistentTopic",
            r"backlog quota exceeded\. Cannot create producer",
            Severity.CRITICAL,
        ),
        Pattern(
            "topics over their quota",
            "BacklogQuotaManager",
            r"^Backlog quota (?:type )?(?:\S{1,40} )?exceeded for topic",
        ),
    ),
    _check(
        "log-delayed-buckets",
        "Buckets of delayed messages could not be written, read or deleted (log)",
        (
            "Look at the bookies and the metadata store in the same minutes: a bucket is a ledger.",
            "Messages are not lost by it: the index is made anew from the backlog, which takes time.",
        ),
        Pattern("buckets that failed", _BUCKETS, r"Failed to \w+ .{0,40}(?:bucket|snapshot)"),
    ),
    _check(
        "log-cursors",
        "Positions of subscriptions could not be written (log)",
        (
            "Look at the bookies and the metadata store in the same minutes.",
            "Until it is cured a restart delivers again what was acknowledged since: do not move these topics.",
        ),
        Pattern(
            "positions not written",
            "ManagedCursorImpl",
            r"Failed to persist (?:mark-delete )?position|Error while updating ledger cursor",
        ),
    ),
)

LOG_CHECKS: dict[str, LogCheck] = {
    check.check_id: check for check in (DUMPS, *_BY_MESSAGE, CLIENTS, DEBUG, OTHERS, FILES)
}
"""All of them by id, in the order in which they are reported."""
