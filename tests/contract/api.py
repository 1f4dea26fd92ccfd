"""Raw calls to a cluster's admin API: one request is one call, and redirects are looked at, not followed blindly."""

import itertools
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

import httpx

from lab.target import PulsarTarget
from lab.waiting import wait_until
from pulsar_steward.model.pulsar_versions import numbers_of

HOPS = 4
AGREED_WITHIN_S = 40
SYSTEM = "pulsar/system"


class BreakableTarget(PulsarTarget, Protocol):
    """A cluster whose brokers may be killed and started again."""

    def kill_broker(self, broker_id: str, /) -> object:
        """SIGKILL, or as if."""

    def start_broker(self, broker_id: str, /) -> object:
        """Starts it again on its ports."""


class Api:
    """The brokers of a cluster by their index in order of starting, with the token that they want.

    Attributes:
        target: The cluster.
        version: Of Pulsar, as its brokers call themselves; the simulator is of the version that labs are of by default.
    """

    def __init__(self, target: BreakableTarget, client: httpx.Client, version: str) -> None:
        self.target = target
        self.version = version
        self._client = client
        self._names = (f"public/contract-{number}" for number in itertools.count())

    @property
    def line(self) -> str:
        """Its line of releases: ``4.0``."""
        return self.version.rpartition(".")[0]

    @property
    def since_4_2(self) -> bool:
        """Whether it is of 4.2 or later."""
        return numbers_of(self.line) >= (4, 2, 0)

    @property
    def ids(self) -> list[str]:
        """Broker ids, ``host:webport``."""
        return [url.removeprefix("http://") for url in self.target.admin_urls]

    def call(self, method: str, path: str, at: int = 0, **options: Any) -> httpx.Response:
        """One request to one broker; ``path`` may be a whole address."""
        url = path if path.startswith("http") else self.target.admin_urls[at] + path
        return self._client.request(method, url, **options)

    def hops(self, method: str, path: str, at: int = 0, **options: Any) -> list[httpx.Response]:
        """The answers on the way through all redirects, the final one last; the token goes along."""
        answers = [self.call(method, path, at, **options)]
        options.pop("params", None)  # what is left of them stands in the Location
        while answers[-1].is_redirect and len(answers) < HOPS:
            answers.append(self.call(method, answers[-1].headers["Location"], **options))
        return answers

    def final(self, method: str, path: str, at: int = 0, **options: Any) -> httpx.Response:
        """The answer after all redirects."""
        return self.hops(method, path, at, **options)[-1]

    def get(self, path: str, at: int = 0) -> Any:
        """The document at the end of all redirects."""
        return self.final("GET", path, at).raise_for_status().json()

    def get_once_ready(self, path: str, at: int = 0) -> Any:
        """The document, once there is one.

        Real brokers that load many bundles at once for one call are in each other's way, and now and then answer 500
        "Failed to acquire ownership" to the first.
        """
        found: list[httpx.Response] = []

        def ready() -> bool:
            found[:] = [self.final("GET", path, at)]
            return found[0].is_success

        wait_until(ready, f"{path} is answered", AGREED_WITHIN_S)
        return found[0].json()

    def leader(self) -> int:
        """The index of the leader."""
        told = self.get("/admin/v2/brokers/leaderBroker")  # before 4.0 without `brokerId`
        return self.ids.index(told["serviceUrl"].removeprefix("http://"))

    def followers(self) -> list[int]:
        """The indexes of the others."""
        return [index for index in range(len(self.ids)) if index != self.leader()]

    def owner(self, bundle: str) -> int | None:
        """The index of the broker that owns ``tenant/ns/range`` among those that answer; loads nothing."""
        owners = [broker for broker, bundles in self.target.owned_bundles().items() if bundle in bundles]
        return self.ids.index(owners[0]) if owners else None

    def bundles(self, namespace: str) -> list[str]:
        """The ranges of the namespace."""
        bounds = self.get(f"/admin/v2/namespaces/{namespace}/bundles")["boundaries"]
        return [f"{low}_{high}" for low, high in itertools.pairwise(bounds)]

    def agreed_bundles(self, namespace: str) -> list[str]:
        """The ranges once all brokers agree on them: each learns of a split from the metadata store."""
        path = f"/admin/v2/namespaces/{namespace}/bundles"
        told: list[str] = []

        def agree() -> bool:
            told[:] = [self.call("GET", path, at).text for at in range(len(self.ids))]
            return len(set(told)) == 1

        wait_until(agree, f"all brokers agree on the bundles of {namespace}", AGREED_WITHIN_S)
        return self.bundles(namespace)

    def bundle_of(self, topic: str) -> str:
        """The range that holds ``tenant/ns/topic``; loads nothing."""
        return self.call("GET", f"/lookup/v2/topic/persistent/{topic}/bundle").raise_for_status().text

    def look_up(self, topic: str, at: int = 0) -> int:
        """The index of the broker that owns ``tenant/ns/topic``, which is loaded for it.

        Two brokers may try to own a bundle at the same moment. One of them answers 500, and clients ask again.
        """
        answers: list[httpx.Response] = []

        def is_settled() -> bool:
            answers.append(self.final("GET", f"/lookup/v2/topic/persistent/{topic}", at))
            return "Failed to acquire ownership" not in answers[-1].text

        wait_until(is_settled, f"a broker owns the bundle of {topic}", AGREED_WITHIN_S)
        return self.ids.index(answers[-1].raise_for_status().json()["httpUrl"].removeprefix("http://"))

    def new_namespace(self, bundles: int = 4) -> str:
        """A namespace that nobody else uses, without topics."""
        name = next(name for name in self._names if not _shares_bundle_with_policies(name, bundles))
        answer = self.call("PUT", f"/admin/v2/namespaces/{name}", json={"bundles": {"numBundles": bundles}})
        assert answer.status_code == httpx.codes.NO_CONTENT, answer.text
        return name

    def new_partitioned(self, namespace: str, partitions: int) -> str:
        """The partitioned topic ``tenant/ns/topic``; none of its bundles is loaded."""
        answer = self.call("PUT", f"/admin/v2/persistent/{namespace}/topic/partitions", json=partitions)
        assert answer.status_code == httpx.codes.NO_CONTENT, answer.text
        return f"{namespace}/topic"

    def move(self, namespace: str, topic: str, to: int) -> str:
        """Has the bundle of ``tenant/ns/topic`` owned by that broker; returns its range.

        Of two lookups at the same moment only one is given the destination, and brokers look topics up by themselves:
        then it is moved once more.
        """
        bundle = self.bundle_of(topic)

        def there() -> bool:
            if self.look_up(topic) != to:
                self.final("PUT", f"/admin/v2/namespaces/{namespace}/{bundle}/unload", params=self.to(to))
            return self.look_up(topic) == to

        wait_until(there, f"{namespace}/{bundle} is moved to {self.ids[to]}", AGREED_WITHIN_S)
        return bundle

    def to(self, index: int) -> dict[str, str]:
        """The parameter that names a broker as an unload's destination."""
        return {"destinationBroker": self.ids[index]}


def _shares_bundle_with_policies(namespace: str, bundles: int) -> bool:
    """Whether the names that tests use lie beside the topic of topic policies.

    A real broker reads that topic of every namespace it owns a bundle of, so somebody owns its bundle again moments
    after it was unloaded.
    """
    step = (1 << 32) // bundles
    names = ("__change_events", "topic", "topic-partition-0")
    policies, *used = (zlib.crc32(f"persistent://{namespace}/{name}".encode()) // step for name in names)
    return bundles > 1 and policies in used


def shape(document: object) -> Iterator[str]:
    """The paths of a document with the kinds of its leaves, such as ``cpu.usage: number``; one element of each list."""
    match document:
        case dict():
            for key, value in document.items():
                yield from (f"{key}.{rest}" if rest else key for rest in shape(value))
        case [first, *_]:
            yield from (f"[].{rest}" for rest in shape(first))
        case bool():
            yield ": bool"
        case int() | float():
            yield ": number"
        case str():
            yield ": text"
        case _:
            yield ""
