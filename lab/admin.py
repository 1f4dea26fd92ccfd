"""The few calls of the admin API that the lab needs, made with httpx; independent of the library on purpose."""

import itertools
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

import httpx

from lab.errors import AdminCallError
from lab.model import CLUSTER
from lab.placement import COORDINATOR_TOPIC, SYSTEM_NAMESPACE

TIMEOUT_S = 10.0
HOPS = 3
BODY_SHOWN = 256
# Most labs speak plain HTTP; without this httpx loads the machine's certificates for each client, 40 ms of a busy core.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Admin:
    """Speaks to one broker.

    Redirects are followed here and not by httpx, which drops the token on its way to another port.

    Args:
        url: ``http://host:port`` of the broker.
        token: The superuser's token, or None.
        timeout_s: How long a call may take; a paused broker accepts connections and never answers.
        context: Certificates to trust, and the superuser's own, for a lab that speaks TLS.
        names: Names by which brokers redirect to each other and that nobody else can resolve, with their addresses.
        cluster: Name of the broker's cluster.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        context: ssl.SSLContext = NO_CERTIFICATES,
        names: Mapping[str, str] | None = None,
        cluster: str = CLUSTER,
    ) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout_s = timeout_s
        self._context = context
        self._names = names or {}
        self._cluster = cluster

    def healthy(self) -> bool:
        """Tells whether the broker can write and read a message."""
        try:
            self._call("GET", "/admin/v2/brokers/health")
        except AdminCallError:
            return False
        return True

    def active_brokers(self) -> tuple[str, ...]:
        """Ids of the brokers that hold a metadata session; a killed one stays until its session ends."""
        return tuple(sorted(self._call("GET", f"/admin/v2/brokers/{self._cluster}").json()))

    def leader(self) -> str:
        """Id of the broker that decides on placement; one that was killed stays it until its session ends."""
        told = self._call("GET", "/admin/v2/brokers/leaderBroker").json()  # of old brokers the address alone
        return str(told["serviceUrl"]).partition("://")[2]

    def owned(self, broker_id: str) -> tuple[str, ...]:
        """The bundles that the broker owns, sorted; loads nothing."""
        return tuple(sorted(self._call("GET", f"/admin/v2/brokers/{self._cluster}/{broker_id}/ownedNamespaces").json()))

    def bundles(self, namespace: str) -> tuple[str, ...]:
        """The ranges (``0xLOW_0xHIGH``) that the namespace is cut into."""
        bounds = self._call("GET", f"/admin/v2/namespaces/{namespace}/bundles").json()["boundaries"]
        return tuple(f"{low}_{high}" for low, high in itertools.pairwise(bounds))

    def topics_in(self, namespace: str, bundle: str) -> tuple[str, ...]:
        """The topics of a bundle, sorted; none where nobody owns it. Loads nothing."""
        path = f"/admin/v2/namespaces/{namespace}/{bundle}/topicHashPositions"
        try:
            return tuple(sorted(self._call("GET", path).json()["topicHashPositions"]))
        except AdminCallError as error:
            if "Failed to find ownership" in str(error):
                return ()
            raise

    def policies(self, namespace: str) -> dict[str, Any]:
        """All policies of a namespace, as the broker has them."""
        document: dict[str, Any] = self._call("GET", f"/admin/v2/namespaces/{namespace}").json()
        return document

    def coordinators(self) -> int:
        """Number of the cluster's transaction coordinators."""
        path = f"/admin/v2/persistent/{SYSTEM_NAMESPACE}/{COORDINATOR_TOPIC}/partitions"
        return int(self._call("GET", path).json()["partitions"])

    def look_up(self, topic: str) -> None:
        """Asks who owns a topic (its full name), which has its bundle loaded somewhere."""
        self._call("GET", f"/lookup/v2/topic/{topic.replace('://', '/')}")

    def create_namespace(self, namespace: str, bundles: int, **policies: object) -> None:
        """Makes a namespace that is cut into so many bundles; ``policies`` are of its document."""
        document = {"bundles": {"numBundles": bundles}, **policies}
        self._call("PUT", f"/admin/v2/namespaces/{namespace}", document=document)

    def create_topic(self, topic: str) -> None:
        """Makes a topic without partitions, by its full name, which loads its bundle."""
        self._call("PUT", f"/admin/v2/{topic.replace('://', '/')}")

    def load_topic(self, topic: str) -> None:
        """Asks for a topic's statistics, by its full name, which has its broker load it."""
        self._call("GET", f"/admin/v2/{topic.replace('://', '/')}/stats")

    def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        """Makes a topic with partitions, by its full name."""
        self._call("PUT", f"/admin/v2/{topic.replace('://', '/')}/partitions", document=partitions)

    def unload(self, namespace: str, bundle: str, destination: str) -> None:
        """Has the bundle's owner give it up; the next lookup finds it on the destination."""
        self._call("PUT", f"/admin/v2/namespaces/{namespace}/{bundle}/unload", destinationBroker=destination)

    def _call(
        self, method: str, path: str, document: object = None, text: str | None = None, **parameters: str
    ) -> httpx.Response:
        url = str(httpx.URL(self._url + path, params=parameters))
        # A proxy from the environment has no way to this machine's loopback interface.
        with httpx.Client(
            headers=self._headers, timeout=self._timeout_s, trust_env=False, verify=self._context
        ) as client:
            for _ in range(HOPS):
                answer = self._ask(client, method, url, document, text)
                if not answer.is_redirect:
                    break
                url = self._reached(urljoin(url, answer.headers["Location"]))
        if not answer.is_success:
            raise AdminCallError(f"{method} {url}: {answer.status_code} {answer.text[:BODY_SHOWN]}")
        return answer

    def _reached(self, url: str) -> str:
        target = httpx.URL(url)
        return str(target.copy_with(host=self._names.get(target.host, target.host)))

    @staticmethod
    def _ask(client: httpx.Client, method: str, url: str, document: object, text: str | None) -> httpx.Response:
        try:
            if text is not None:  # which brokers call JSON, too
                return client.request(method, url, content=text, headers={"Content-Type": "application/json"})
            return client.request(method, url, json=document)
        except httpx.HTTPError as error:
            raise AdminCallError(f"{method} {url}: no answer ({type(error).__name__}: {error})") from error
