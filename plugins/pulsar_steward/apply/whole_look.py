"""What the steps of a batch share of the look before each of them: what is of the whole cluster, not of one change.

Looking before and between the N changes of a batch on B brokers costs at most B + 3N calls, beside what each change
itself needs (its bundle's owner and boundaries, statistics, metrics, positions, its setting). All brokers are asked
once; before each change it is asked anew which cluster answers, which brokers it lists, and whether the target answers.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.isolation import IsolationPolicy, allowed_brokers
from pulsar_steward.errors import AdminError
from pulsar_steward.model.cluster import ClusterIdentity

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.policy.schema import Policy

WHOLE_LOOK_SECONDS = 60.0
"""How long what all brokers said is taken to hold, while the same ones are listed.

As long as their own statistics, by which clients and backlogs are judged. A broker that dies leaves the list within
30 s (its metadata session), which is seen before the next change.
"""

INSTANT_SECONDS = 5.0
"""Within which two looks with no call between them are one: looking at one bundle alone may take as long."""

BOOKIE_STATUS = "bookie_SERVER_STATUS"
"""1: writable; 0: read-only, as its own metrics tell."""


class _Answering(msgspec.Struct, frozen=True):
    """Which cluster answered, and which brokers it listed."""

    at: float
    identity: ClusterIdentity
    listed: frozenset[str]


class _Told(msgspec.Struct, kw_only=True):
    """What all brokers of a list told, and what else was read of the cluster as a whole since.

    Attributes:
        at: When they were asked.
        answering: Who they are.
        owned: What each of them owns, or why it could not be read.
        bundles: Of namespaces, by name.
        isolation: The cluster's isolation policies; None: not read yet.
        read_only: Bookies that take no writes; None: not read yet.
        clocks: How far each broker's clock is ahead; None: not read yet.
    """

    at: float
    answering: _Answering
    owned: dict[str, tuple[str, ...] | AdminError]
    bundles: dict[str, tuple[str, ...] | None] = {}
    isolation: tuple[IsolationPolicy, ...] | None = None
    read_only: tuple[str, ...] | None = None
    clocks: dict[str, int | None] | None = None


class WholeLook:
    """One cluster as a whole, for the steps of one batch. Every method raises `AdminError` where it cannot be read.

    Args:
        reader: Reads the cluster.
        policy: Which bookies are looked at.
        seconds: A clock that nobody sets.
    """

    def __init__(self, reader: LiveReader, policy: Policy, seconds: Callable[[], float] = time.monotonic) -> None:
        self.reader = reader
        self.policy = policy
        self._seconds = seconds
        self._answering: _Answering | None = None
        self._told: _Told | None = None
        self._heard: set[str] = set()

    def begin(self) -> None:
        """Looks at another step: who answers and who is listed are asked anew, unless they were an instant ago."""
        if self._answering is not None and self._seconds() - self._answering.at > INSTANT_SECONDS:
            self.called()

    def called(self) -> None:
        """Something was called: nothing is as it was an instant ago."""
        self._answering = None
        self._heard.clear()

    def identity(self) -> ClusterIdentity:
        """The Pulsar cluster that answers."""
        return self._now().identity

    def listed(self) -> frozenset[str]:
        """Brokers that the cluster lists; one that was killed a moment ago is still among them."""
        return self._now().listed

    def silent(self) -> frozenset[str]:
        """Those of them that did not answer."""
        return frozenset(broker for broker, owned in self._whole().owned.items() if isinstance(owned, AdminError))

    def active(self) -> list[str]:
        """Those that did, in order."""
        return sorted(self.listed() - self.silent())

    def answers(self, broker: str) -> bool:
        """Whether a broker is listed and answers in this very look."""
        if broker not in self.listed() or broker in self.silent():
            return False
        if broker not in self._heard:
            told = self._whole()
            told.owned[broker] = self.reader.owned_by_each([broker])[broker]
            self._heard.add(broker)
        return broker not in self.silent()

    def owned_by(self, broker: str) -> tuple[str, ...]:
        """Bundles (``tenant/ns/range``) of one broker, as it told when all were asked.

        What permits a call is asked anew, of the broker itself (`LiveReader.owned_by`).
        """
        owned = self._whole().owned[broker]
        if isinstance(owned, AdminError):
            raise owned
        return owned

    def bundles(self, namespace: str) -> tuple[str, ...] | None:
        """A namespace's bundles in order, likewise; None where there is no such namespace."""
        bundles = self._whole().bundles
        if namespace not in bundles:
            bundles[namespace] = self.reader.bundles(namespace)
        return bundles[namespace]

    def allowed(self, namespace: str) -> frozenset[str] | None:
        """Brokers that isolation policies leave to a namespace; None: every broker."""
        told = self._whole()
        if told.isolation is None:
            told.isolation = self.reader.isolation_policies()
        allowed = allowed_brokers(told.isolation, namespace, told.answering.listed)
        return None if allowed is None else frozenset(allowed)

    def read_only_bookies(self) -> tuple[str, ...]:
        """Bookies that take no writes, of those that the policy names."""
        told = self._whole()
        if told.read_only is None:
            named = (each.partition("=") for each in self.policy.collect.metrics_urls)
            urls = [url for kind, _, url in named if kind == "bookie"]
            told.read_only = tuple(url for url in urls if self._takes_no_writes(url))
        return told.read_only

    def clocks(self) -> dict[str, int | None]:
        """By how many milliseconds the clock of each broker that answers is ahead of this machine's; None: not told."""
        told = self._whole()
        if told.clocks is None:
            told.clocks = {broker: self.reader.clock_milliseconds(broker) for broker in self.active()}
        return told.clocks

    def _takes_no_writes(self, url: str) -> bool:
        return any(sample.value == 0 for sample in self.reader.bookie_samples(url, BOOKIE_STATUS))

    def _now(self) -> _Answering:
        if self._answering is None or self._seconds() - self._answering.at > WHOLE_LOOK_SECONDS:
            at = self._seconds()
            listed = frozenset(self.reader.brokers())
            self._answering = _Answering(at, self.reader.identity(), listed)
        return self._answering

    def _whole(self) -> _Told:
        """All brokers, asked where they were not yet, others are listed, another cluster answers, or time went by."""
        now, told = self._now(), self._told
        known = told is not None and (told.answering.identity, told.answering.listed) == (now.identity, now.listed)
        if told is None or not known or self._seconds() - told.at > WHOLE_LOOK_SECONDS:
            at = self._seconds()
            told = _Told(at=at, answering=now, owned=self.reader.owned_by_each(sorted(now.listed)))
            self._told, self._heard = told, set(now.listed)
        return told
