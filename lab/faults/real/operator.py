"""Calls of the admin API that faults need: an operator's changes of a namespace, and what brokers show of it."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from lab.admin import Admin
from lab.cluster import Lab
from lab.errors import AdminCallError
from lab.ports import LOOPBACK
from lab.process import condition
from lab.settings import LINK

if TYPE_CHECKING:
    from pathlib import Path

HOLD = "producer_request_hold"
EXCEPTION = "producer_exception"
EVICTION = "consumer_backlog_eviction"

SIZE: Literal["destination_storage"] = "destination_storage"
AGE: Literal["message_age"] = "message_age"
QuotaKind = Literal["destination_storage", "message_age"]

FIRST = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
"""Pulsar's `MessageId.earliest`."""

FRESH_S = 1.0
METRICS_ATTEMPTS = 6
SLOW_CALL_S = 60.0
"""Deleting a namespace of a thousand topics is one call."""

T = TypeVar("T")

Shown = dict[str, dict[str, Any]]
"""Topics by their full names, as the brokers' own statistics show them."""


def operator_of(lab: Lab) -> "Operator":
    """Speaks to the first broker that runs."""
    return operators_of(lab)[0]


def operators_of(lab: Lab) -> "list[Operator]":
    """Speaks to each broker that runs."""
    running = [broker for broker in lab.brokers if condition(broker.process) == "running"]
    return [Operator(broker.admin_url, lab.token, SLOW_CALL_S, cluster=lab.cluster) for broker in running]


def shown_topics(lab: Lab) -> Shown:
    """All topics in the brokers' cached statistics, of which snapshots are made."""
    return {name: topic for operator in operators_of(lab) for name, topic in operator.topics()}


class _Recent(Generic[T]):
    """Cache of the brokers' last answers, for threads that ask the same at about the same time.

    Args:
        ask: Asks them.
    """

    def __init__(self, ask: "Callable[[Lab], T]") -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._of: Path | None = None
        self._at = 0.0
        self._answer: T | None = None

    def __call__(self, lab: Lab) -> T:
        with self._lock:
            if self._answer is None or self._of != lab.home or time.monotonic() - self._at > FRESH_S:
                self._answer = self._ask(lab)
                self._of, self._at = lab.home, time.monotonic()
            return self._answer


recently_shown = _Recent(shown_topics)
"""As `shown_topics`, up to a second ago."""


def _asked_metrics(lab: Lab) -> list[tuple[str, float]]:
    return [row for operator in operators_of(lab) for row in operator.metrics()]


metrics_of = _Recent(_asked_metrics)
"""The Prometheus series of all brokers, up to a second ago."""


class Operator(Admin):
    """One broker's admin API; what is set here is set as an operator would."""

    def set_policy(self, subject: str, policy: str, document: object) -> None:
        """Sets a policy (``retention``, ``messageTTL``) of a namespace (``tenant/name``) or topic (full name)."""
        self._call("POST", f"{_path(subject)}/{policy}", document=document)

    def has_policy(self, subject: str, policy: str) -> bool:
        """True if a policy is set; one of a topic takes a moment, and asking for it loads the topic."""
        answer = self._call("GET", f"{_path(subject)}/{policy}")
        return bool(answer.content and answer.json())

    def policies(self, namespace: str) -> dict[str, Any]:
        """All that is set on a namespace, as one document; loads nothing."""
        answer: dict[str, Any] = self._call("GET", _path(namespace)).json()
        return answer

    def set_quota(self, subject: str, kind: QuotaKind, limit: int, policy: str) -> None:
        """Limits the backlog of a namespace's topics, or of one topic, in bytes or in seconds."""
        size, seconds = (limit, -1) if kind == SIZE else (-1, limit)
        document = {"limitSize": size, "limitTime": seconds, "policy": policy}
        self._call("POST", f"{_path(subject)}/backlogQuota", document=document, backlogQuotaType=kind)

    def set_retention(self, subject: str, minutes: int, megabytes: int) -> None:
        """Keeps what is consumed for so long and up to so much; -1: without limit."""
        self.set_policy(subject, "retention", {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes})

    def create_partitions(self, topic: str, count: int) -> None:
        """Makes a partitioned topic, by its full name; loads nothing."""
        self._call("PUT", f"{_path(topic)}/partitions", document=count)

    def create_subscription(self, topic: str, name: str, *, from_first: bool = False) -> None:
        """Makes a subscription of a topic, without a consumer, that begins at the end or with the first message."""
        self._call("PUT", f"{_path(topic)}/subscription/{name}", document=FIRST if from_first else None)

    def reset_subscription(self, topic: str, name: str) -> None:
        """Has a subscription of a topic begin anew with the first message."""
        self._call("POST", f"{_path(topic)}/subscription/{name}/resetcursor", document=FIRST)

    def delete_subscription(self, topic: str, name: str) -> None:
        """Deletes a subscription of a topic that nobody is connected to."""
        self._call("DELETE", f"{_path(topic)}/subscription/{name}")

    def split(self, namespace: str, bundle: str) -> None:
        """Cuts a bundle in two in the middle of its range."""
        path = f"/admin/v2/namespaces/{namespace}/{bundle}/split"
        self._call("PUT", path, unload="true", splitAlgorithmName="range_equally_divide")

    def trim(self, topic: str) -> None:
        """Deletes at once what a topic stores beyond its retention."""
        self._call("POST", f"{_path(topic)}/trim")

    def unload_topic(self, topic: str) -> None:
        """Closes a topic with its ledger; its clients bring it back."""
        self._call("PUT", f"{_path(topic)}/unload")

    def unload_namespace(self, namespace: str) -> None:
        """Closes all topics of a namespace; their clients bring them back."""
        self._call("PUT", f"{_path(namespace)}/unload")

    def statistics(self, topic: str) -> dict[str, Any]:
        """A loaded topic as it stands now; loads its bundle otherwise."""
        answer: dict[str, Any] = self._call("GET", f"{_path(topic)}/stats", subscriptionBacklogSize="false").json()
        return answer

    def topics(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The topics of this broker's cached statistics."""
        document = self._call("GET", "/admin/v2/broker-stats/topics").json()
        for bundles in document.values():
            for domains in bundles.values():
                for topics in domains.values():
                    yield from topics.items()

    @retry(
        retry=retry_if_exception_type(AdminCallError),
        stop=stop_after_attempt(METRICS_ATTEMPTS),
        wait=wait_fixed(0.5),
        reraise=True,
    )
    def metrics(self) -> list[tuple[str, float]]:
        """This broker's Prometheus series as they are written, labels included, with their values.

        A broker that unloads a bundle may answer with 500, and is well the next moment (seen on 4.0.7).
        """
        lines = self._call("GET", "/metrics/").text.splitlines()
        parts = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
        return [(name, float(value)) for name, value in parts]

    def set_isolation(self, policy: str, namespaces: str, brokers: str) -> None:
        """Lets the matching namespaces be on matching hosts only; unloads all of their bundles."""
        document = {
            "namespaces": [namespaces],
            "primary": [brokers],
            "secondary": [],
            "auto_failover_policy": {
                "policy_type": "min_available",
                "parameters": {"min_limit": "1", "usage_threshold": "80"},
            },
        }
        self._call("POST", f"/admin/v2/clusters/{self._cluster}/namespaceIsolationPolicies/{policy}", document=document)

    def drop_isolation(self, policy: str) -> None:
        """Removes an isolation policy; one that does not exist is no error."""
        self._call("DELETE", f"/admin/v2/clusters/{self._cluster}/namespaceIsolationPolicies/{policy}")

    def set_anti_affinity(self, namespace: str, group: str) -> None:
        """Puts a namespace into an anti-affinity group."""
        self._call("POST", f"{_path(namespace)}/antiAffinity", text=group)

    @contextlib.contextmanager
    def cluster_that_is_away(self, name: str) -> Iterator[None]:
        """Another cluster that may serve the tenant ``public``, at an address that nobody listens at, for a block.

        At its end no namespace may be replicated to it any more.
        """
        nobody = {"serviceUrl": "http://127.0.0.1:9", "brokerServiceUrl": "pulsar://127.0.0.1:9"}
        self._call("PUT", f"/admin/v2/clusters/{name}", document=nobody)
        self._serve_public(self._cluster, name)
        yield
        self._serve_public(self._cluster)
        self._call("DELETE", f"/admin/v2/clusters/{name}")

    def _serve_public(self, *clusters: str) -> None:
        self._call("POST", "/admin/v2/tenants/public", document={"adminRoles": [], "allowedClusters": clusters})

    def create_tenant(self, name: str, *clusters: str) -> None:
        """Makes a tenant whose namespaces these clusters may serve."""
        self._call("PUT", f"/admin/v2/tenants/{name}", document={"adminRoles": [], "allowedClusters": clusters})

    def update_tenant(self, name: str, *clusters: str) -> None:
        """Has these clusters, and no other, serve a tenant's namespaces."""
        self._call("POST", f"/admin/v2/tenants/{name}", document={"adminRoles": [], "allowedClusters": clusters})

    def lead_to(self, cluster: str, web_url: str, link_port: int) -> None:
        """Has other clusters reach a cluster's only broker by a link, from their next connection on."""
        reached = {"brokerServiceUrl": f"pulsar://{LOOPBACK}:{link_port}", "listenerName": LINK}
        self._call("POST", f"/admin/v2/clusters/{cluster}", document={"serviceUrl": web_url, **reached})

    def replicate_subscription(self, topic: str, name: str) -> None:
        """Has the position of a subscription go along to the clusters that its topic is replicated to."""
        self._call("POST", f"{_path(topic)}/subscription/{name}/replicatedSubscriptionStatus", document=True)

    def delete_namespace(self, namespace: str) -> None:
        """Removes a namespace with all of its topics and clients; needs ``forceDeleteNamespaceAllowed``."""
        self._call("DELETE", f"/admin/v2/namespaces/{namespace}", force="true")

    def delete_topic(self, topic: str) -> None:
        """Removes a topic with all of its clients."""
        self._call("DELETE", _path(topic), force="true")

    def exists(self, namespace: str) -> bool:
        """True if the cluster knows the namespace."""
        tenant = namespace.partition("/")[0]
        return namespace in self._call("GET", f"/admin/v2/namespaces/{tenant}").json()


def _path(subject: str) -> str:
    """Path of the policies of a topic (``persistent://tenant/ns/name``) or a namespace (``tenant/ns``)."""
    if "://" in subject:
        return f"/admin/v2/{subject.replace('://', '/')}"
    return f"/admin/v2/namespaces/{subject}"
