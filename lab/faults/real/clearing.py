"""A namespace that was a fault's ground goes with all of its topics, seen by the brokers."""

import contextlib
import threading

from lab.cluster import Lab
from lab.errors import AdminCallError
from lab.faults.real.operator import operator_of, recently_shown
from lab.waiting import wait_until

GONE_WITHIN_S = 180.0
EVERY_S = 0.5

CLEARING = threading.Semaphore(6)
"""Namespaces that are deleted at one time: each of their topics is work for the brokers' metadata store."""


def clear(lab: Lab, namespace: str) -> None:
    """Removes a namespace, and waits until no broker shows anything of it any more.

    Raises:
        NotReachedError: Some still do.
    """
    admin = operator_of(lab)

    def gone() -> bool:
        try:
            if admin.exists(namespace):
                admin.delete_namespace(namespace)
        except AdminCallError:
            # The brokers refuse for a moment where topics are still being closed; and for ever where the last
            # compaction of one of Pulsar's own topics failed, which is forgotten only with an unload.
            with contextlib.suppress(AdminCallError):
                admin.unload_namespace(namespace)
        return not admin.exists(namespace)

    with CLEARING:
        wait_until(gone, f"{namespace} is deleted", GONE_WITHIN_S, EVERY_S)
    prefix = f"persistent://{namespace}/"

    def unseen() -> bool:
        # A client that a quota cut off may have had its topic made anew while the namespace went.
        # Topics of Pulsar's own do not count: a broker's reader may leave a deleted one in the statistics for good.
        left = [
            topic for topic in recently_shown(lab) if topic.startswith(prefix) and not topic.startswith(f"{prefix}__")
        ]
        for topic in left:
            with contextlib.suppress(AdminCallError):
                admin.delete_topic(topic)
        return not left

    wait_until(unseen, f"no broker shows topics of {namespace}", GONE_WITHIN_S, EVERY_S)
