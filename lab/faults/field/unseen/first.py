"""How an unseen report is written down, with its first verdict, and what several of them have."""

from typing import Any

from lab.faults.fault import SimulatedFault
from lab.faults.field.reported import reported
from lab.simulator import (
    ClusterSpec,
)

READERS = tuple(f"reader-{0x4C1D0A7B32 + 0x1357BD91F * number:010x}" for number in range(9))


FIRST = {
    "repl-one-partition-stalled": "missed",
    "policy-topic-compaction-never-succeeds": "missed",
    "policy-readers-hit-subscription-limit": "missed",
    "txn-buffer-never-ready": "half",
    "backlog-on-two-dead-bookies": "found",
    "keyshared-new-consumer-behind-delay": "half",
    "slow-bookie-eats-direct-memory": "found",
    "reader-jumps-over-retained-history": "missed",
    "zookeeper-disk-too-small-for-topics": "found",
    "readers-only-topic-large-storage": "found",
    "offload-lost-the-race-with-trimming": "wrong",
    "hot-bundle-with-one-topic": "wrong",
}
"""Verdicts of the first run, on 2026-11-28, before anything was mended for these."""


def unseen(name: str, address: str, about: str, right: str, *specs: ClusterSpec, **label: Any) -> SimulatedFault:
    """A fault as `reported`, with the verdict of its first run."""
    return reported(name, address, about, right, *specs, unseen=FIRST[name], **label)


def persistence(ensemble: int, write: int, ack: int) -> dict[str, object]:
    """Policies of a namespace with those quorums."""
    kept = {"bookkeeperEnsemble": ensemble, "bookkeeperWriteQuorum": write, "bookkeeperAckQuorum": ack}
    return {"persistence": {**kept, "managedLedgerMaxMarkDeleteRate": 0.0}}
