"""Lines of logs, as real processes print them, and thread dumps.

`SEEN` are lines of brokers and bookies of the lab (4.0.7), whose layout is ``time LEVEL class message``. `WRITTEN` are
made of the messages in the class files of Pulsar 4.0.7, BookKeeper 4.17.2 and ZooKeeper 3.9.3, in the layout that
Pulsar ships: no lab has shown them yet. `WRITTEN_BY_5` are of the same kind, of 5.0.1 and BookKeeper 4.18.2, whose
messages have what varies beside them, in braces in the layout that ships (PIP-467).
"""

import re


def _rows(text: str) -> list[tuple[str, str]]:
    """The check and the line of each row; a line of a log may itself be of several lines."""
    return [(row[0], row[1]) for row in (line.split(": ", 1) for line in re.split(r"\n(?=log-)", text))]


SEEN = _rows(
    """\
log-slow-tasks: 14:10:59.242 WARN OrderedExecutor Runnable class java.util.concurrent.CompletableFuture$UniAccept \
took too long 1534140 micros to execute.
log-bundles-not-loaded: 19:25:55.840 WARN NamespaceService No broker is available for \
public/kept-from-all-brokers/0xc0000000_0xffffffff
log-bookies: 14:13:26.968 INFO BookieStateManager Transitioning Bookie to ReadOnly mode, and will serve only read \
requests from clients!
log-bookies: 08:37:47.876 WARN PendingAddOp Failed to write entry (10, 230) to bookie (0, 127.0.0.1:21816): Bookie \
operation timeout
log-bookies: 08:37:47.950 ERROR LedgerCreateOp Not enough bookies to create ledger with ensembleSize=1, \
writeQuorumSize=1 and ackQuorumSize=1
log-bookies: 08:37:47.950 ERROR ManagedLedgerImpl [public/default/persistent/versions] Error creating ledger rc=-6 \
Not enough non-faulty bookies available
log-metadata-store: 10:49:15.922 ERROR ZKSessionWatcher ZooKeeper session expired
log-metadata-store: 08:38:20.991 ERROR ZKSessionWatcher ZooKeeper session reconnection timeout. Notifying session is \
lost.
log-metadata-store: 08:38:14.771 WARN ZKSessionWatcher [72063060424851463] ZooKeeper client is disconnected. Waiting \
to reconnect, time remaining = 25.0 seconds
log-quota: 11:22:26.164 INFO BacklogQuotaManager Backlog quota type destination_storage exceeded for topic \
[persistent://public/full-producer-exception/t]. Applying [producer_exception] policy"""
)
EXPIRED = "10:49:15.922 ERROR ZKSessionWatcher ZooKeeper session expired"

_HEAD = "2026-03-01T07:12:03,423+0000 [pulsar-io-4-1] WARN  "
_BROKER = f"{_HEAD}org.apache.pulsar.broker.service."
_LEDGER = f"{_HEAD}org.apache.bookkeeper.mledger.impl."

WRITTEN = _rows(
    f"""\
log-connections-dropped: {_HEAD}org.apache.pulsar.common.protocol.PulsarHandler - [[id: 0xd0f5a4b1, L:/10.0.0.1:6650 \
- R:/10.0.0.9:40112]] Forcing connection to close after keep-alive timeout
log-connections-dropped: {_HEAD}org.apache.pulsar.common.protocol.PulsarHandler - [[id: 0xd0f5a4b1, L:/10.0.0.1:6650 \
- R:/10.0.0.9:40112]] Pulsar Handshake was not completed within timeout, closing connection
log-connections-dropped: {_BROKER}ServerCnx - [/10.0.0.9:40112] Connection check timed out. Closing connection.
log-too-many-requests: {_BROKER}ServerCnx - [/10.0.0.9:40112] Failed lookup due to too many lookup-requests \
persistent://a/b/c
log-too-many-requests: {_BROKER}ConnectionController$DefaultConnectionController - Reject connect request from \
/10.0.0.9:40112, because reached the maximum number of connections 10000
log-too-many-requests: {_HEAD}org.apache.bookkeeper.proto.BookieRequestProcessor - Failed to process request to add \
entry at 41:7. Too many pending requests
log-too-many-requests: {_LEDGER}ManagedLedgerImpl - Too many request error from bookies
log-too-many-requests: 2026-03-01 07:12:03,423 [myid:1] - WARN  \
[NIOServerCxnFactory.AcceptThread:/0.0.0.0:2181:o.a.z.s.NIOServerCnxnFactory@288] - Too many connections from \
/10.0.0.9 - max is 60
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - [a/b/persistent/c]-41 ledger creation timed-out, deleting ledger
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - [a/b/persistent/c] Timeout creating ledger
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - [a/b/persistent/c] Ledger creation was initiated 61000 ms ago but it \
never completed and creation timeout task didn't kick in as well. Force to fail the create ledger operation.
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - [a/b/persistent/c] Error creating ledger rc=-5 Error while using \
ZooKeeper
log-topics-fenced: {_BROKER}AbstractTopic - [persistent://a/b/c] Attempting to add producer to a fenced topic
log-topics-fenced: {_BROKER}BrokerService - Namespace is being unloaded, cannot add topic persistent://a/b/c
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - [a/b/persistent/c] Failed to add entry 41:7 in time-out 120 sec
log-bookies: {_HEAD}org.apache.bookkeeper.client.LedgerCreateOp - Not enough bookies to create ledger with \
ensembleSize=3, writeQuorumSize=3 and ackQuorumSize=2
log-bookies: {_HEAD}org.apache.bookkeeper.client.RackawareEnsemblePlacementPolicyImpl - Not enough bookies are \
available to form an ensemble : [10.0.0.3:3181].
log-bookies: {_HEAD}org.apache.bookkeeper.util.DiskChecker - Space left on device /data/ledgers : 1024, Used space \
fraction: 0.97 > threshold 0.95.
log-bookies: {_HEAD}org.apache.bookkeeper.proto.WriteEntryProcessor - BookieServer is running in readonly mode, so \
rejecting the request from the client!
log-bookies: {_HEAD}org.apache.bookkeeper.client.PendingAddOp - Failed to write entry (41, 7) to bookie (0, \
10.0.0.3:3181): Bookie operation timeout
log-bookies: {_HEAD}org.apache.bookkeeper.client.BookieWatcherImpl - Not enough healthy bookies available, using \
quarantined bookies
log-metadata-store: {_HEAD}org.apache.pulsar.metadata.impl.ZKSessionWatcher - [72058717280469001] ZooKeeper client is \
disconnected. Waiting to reconnect, time remaining = 8.333 seconds
log-metadata-store: 2026-03-01 07:12:03,423 [myid:1] - WARN  [SyncThread:1:FileTxnLog@398] - fsync-ing the write \
ahead log in SyncThread:1 took 5213ms which will adversely effect operation latency.File size is 67108880 bytes. See \
the ZooKeeper troubleshooting guide
log-metadata-store: 2026-03-01 07:12:03,423 [myid:1] - ERROR [CommitProcessor:1:NIOServerCnxn@178] - Unexpected \
Exception:\x20
java.nio.channels.CancelledKeyException
\tat sun.nio.ch.SelectionKeyImpl.ensureValid(SelectionKeyImpl.java:73)
log-metadata-store: {_HEAD}org.apache.zookeeper.ClientCnxn - Session 0x1000 for server zk/10.0.0.3:2181, Closing \
socket connection. Attempting reconnect except it is a SessionExpiredException or SessionTimeoutException.
java.io.IOException: Packet len 10715341 is out of range!
\tat org.apache.zookeeper.ClientCnxnSocket.readLength(ClientCnxnSocket.java:121)
log-memory: {_BROKER}ServerCnx - [/10.0.0.9:40112] Got exception java.lang.OutOfMemoryError: Direct buffer memory
log-memory: {_BROKER}BrokerService - failed
io.netty.util.internal.OutOfDirectMemoryError: failed to allocate 4194304 byte(s) of direct memory (used: 533725191, \
max: 536870912)
log-memory: [2026-03-01T07:12:03.423+0000][123.456s][info][gc] GC(12) Pause Full (G1 Compaction Pause) \
511M->400M(512M) 4234.567ms
log-memory: 2026-03-01T07:12:03.423+0000: 123.456: [Full GC (Allocation Failure)  511M->400M(512M), 4.2345678 secs]
log-quota: {_BROKER}persistent.PersistentTopic - [persistent://a/b/c] Size backlog quota exceeded. Cannot create \
producer [p]
log-delayed-buckets: {_HEAD}org.apache.pulsar.broker.delayed.bucket.BucketDelayedDeliveryTracker - \
[persistent://a/b/c / s] Failed to create bucket snapshot, bucketKey: #pulsar.internal.delayed.bucket_1_2
log-delayed-buckets: {_HEAD}org.apache.pulsar.broker.delayed.bucket.ImmutableBucket - [persistent://a/b/c / s] Failed \
to delete bucket snapshot, bucketId: 4, bucketKey: #pulsar.internal.delayed.bucket_1_2
log-cursors: {_LEDGER}ManagedCursorImpl - [a/b/persistent/c][s] Failed to persist mark-delete position into \
cursor-ledger41: Bookie handle is not available"""
)

WRITTEN_BY_5 = _rows(
    f"""\
log-connections-dropped: {_BROKER}ServerCnx - Connection check timed out, closing connection {{remote=/10.0.0.9:40112}}
log-bundles-not-loaded: {_BROKER}NamespaceService - No broker is available {{bundle=a/b/0x00000000_0xffffffff}}
log-slow-tasks: {_HEAD}org.apache.bookkeeper.common.util.OrderedExecutor - Runnable took too long to execute
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - Ledger creation timed-out, deleting ledger {{ledger=41}}
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - Timeout creating ledger
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - Ledger creation was initiated but it never completed and creation \
timeout task didn't kick in as well. Force to fail the create ledger operation.
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - Error creating ledger {{rc=-5}}
log-ledger-switch: {_LEDGER}ManagedLedgerImpl - Failed to add entry in time-out {{ledgerId=41}}
log-bookies: {_HEAD}org.apache.bookkeeper.client.PendingAddOp - Failed to write entry to bookie {{bookie=10.0.0.3:3181}}
log-quota: {_BROKER}BacklogQuotaManager - Backlog quota type exceeded for topic. Applying policy {{topic=a/b/c}}"""
)

_IDLE = """   java.lang.Thread.State: RUNNABLE
\tat io.netty.channel.epoll.Native.epollWait0(Native Method)
\tat io.netty.channel.epoll.EpollEventLoop.run(EpollEventLoop.java:383)
\tat java.lang.Thread.run(java.base@17.0.2/Thread.java:833)
"""
_BUSY = """   java.lang.Thread.State: RUNNABLE
\tat java.util.TreeMap.put(java.base@17.0.2/TreeMap.java:566)
\tat org.apache.pulsar.broker.service.Consumer.individualAck(Consumer.java:512)
\tat org.apache.pulsar.broker.service.ServerCnx.handleAck(ServerCnx.java:1700)
"""
_BLOCKED = """   java.lang.Thread.State: BLOCKED (on object monitor)
\tat org.apache.pulsar.broker.service.persistent.PersistentSubscription.addConsumer(PersistentSubscription.java:100)
\t- waiting to lock <0x000000058e35a2b0> (a org.apache.pulsar.broker.service.persistent.PersistentSubscription)
\tat org.apache.pulsar.broker.service.ServerCnx.handleSubscribe(ServerCnx.java:1200)
"""
_WAITS = """   java.lang.Thread.State: WAITING (parking)
\tat jdk.internal.misc.Unsafe.park(java.base@17.0.2/Native Method)
\t- parking to wait for  <0x00000007767804e8> (a java.util.concurrent.CompletableFuture$Signaller)
\tat java.util.concurrent.locks.LockSupport.park(java.base@17.0.2/LockSupport.java:211)
\tat java.util.concurrent.CompletableFuture.waitingGet(java.base@17.0.2/CompletableFuture.java:1898)
\tat java.util.concurrent.CompletableFuture.join(java.base@17.0.2/CompletableFuture.java:2117)
\tat org.apache.pulsar.broker.service.BrokerService.getTopicSync(BrokerService.java:900)
\t- locked <0x000000058e35a2b0> (a org.apache.pulsar.broker.service.persistent.PersistentSubscription)
"""
_QUEUE = """   java.lang.Thread.State: WAITING (parking)
\tat jdk.internal.misc.Unsafe.park(java.base@17.0.2/Native Method)
\tat org.apache.bookkeeper.common.collections.BlockingMpscQueue.take(BlockingMpscQueue.java:60)
"""
STATES = {"idle": _IDLE, "busy": _BUSY, "blocked": _BLOCKED, "waits": _WAITS, "queue": _QUEUE}

DEADLOCK = """
Found one Java-level deadlock:
=============================
"pulsar-io-4-1":
  waiting to lock monitor 0x00007f1c08004e00 (object 0x000000058e35a2b0, a java.lang.Object),
  which is held by "pulsar-io-4-2"
"""


def a_dump(*threads: tuple[str, str], more: str = "") -> str:
    """A thread dump of the threads, given by name and what each of them does (`STATES`)."""
    told = "".join(
        f'"{name}" #{number} prio=5 os_prio=0 cpu=8.10ms elapsed=90.21s tid=0x00007f1c0c0{number:03x}00'
        f" nid=0x1b{number:02x} runnable  [0x00007f1bd3afe000]\n{STATES[state]}\n"
        for number, (name, state) in enumerate(threads, start=1)
    )
    head = "2026-03-01 07:12:03\nFull thread dump OpenJDK 64-Bit Server VM (17.0.2+8 mixed mode, sharing):\n\n"
    return f"{head}{told}\nJNI global refs: 40, weak refs: 0\n{more}"
