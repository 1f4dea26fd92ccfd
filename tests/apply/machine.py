"""Knowledge of the state machine beside the system: who permitted what, and what is true of the cluster.

Nothing here asks the code under test what is permitted: it remembers what was answered and what happened since.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from lab.simulator import ranges
from pulsar_steward.apply.gate import CLOCKS_DIFFER
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, halves_by_topic_count
from pulsar_steward.model.isolation import IsolationPolicy, isolation_policies
from pulsar_steward.model.setting import Retention, SettingName, TimeToLive
from pulsar_steward.model.step import (
    AddPartitions,
    ChangeSetting,
    DeleteSubscription,
    RaiseCoordinators,
    SetIsolation,
    SplitBundle,
    UnloadBundle,
)
from tests.builders import a_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from pulsar_steward.ledger.rows import Intent
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import Change, Step
    from tests.apply.worksite import Worksite

SHOP, RETURNS, WHOLE = "shop/orders", "shop/returns", "0x00000000_0xffffffff"
GROUP = "group"
"""Kind of a wish that is about several namespaces: it is a batch by itself."""

Wish = tuple[str, int, int]
"""What somebody would like to change: the kind, and two numbers that choose what and whereto."""

TTL, RETENTION = "message_ttl_in_seconds", "retention_policies"


@dataclass(frozen=True)
class Word:
    """One person's last answer in a run, given `at`; `until` is None for whatever permits nothing."""

    answer_id: int
    by: str | None
    steps: frozenset[str]
    at: datetime
    until: datetime | None


@dataclass
class Proposal:
    """A recorded plan of one batch, ``b1``, with all that was said of it and done since.

    Attributes:
        words: The last answers by run, then by voice.
        asked: Which run an answer was given to.
        taken: Which run acts on an answer.
        tried_under: The answers under which intents were recorded.
        came_to: Outcomes by run and step.
        forged: Rows that were tampered with, of any plan, as that shuts all: damage, table and key.
    """

    plan: Plan
    voices: int
    words: dict[str, dict[int, Word]] = field(default_factory=dict)
    asked: dict[int, str] = field(default_factory=dict)
    taken: dict[int, str] = field(default_factory=dict)
    tried_under: set[int] = field(default_factory=set)
    came_to: dict[tuple[str, str], str] = field(default_factory=dict)
    superseded: bool = False
    ended: bool = False
    forged: set[tuple[str, str, str]] = field(default_factory=set)

    @property
    def step_ids(self) -> tuple[str, ...]:
        """Ids of its steps, in order."""
        return tuple(step.step_id for step in self.plan.batches[0].steps)

    @property
    def is_group(self) -> bool:
        """True if one question asks about several namespaces, some of which may be left out."""
        return len({step.change.namespace for step in self.plan.batches[0].steps}) > 1 and all(
            isinstance(step.change, ChangeSetting) for step in self.plan.batches[0].steps
        )

    def permitted(self, run: str, now: datetime) -> frozenset[str]:
        """The steps that a run may change now, as long as nobody said stop."""
        words = [word for _, word in sorted(self.words.get(run, {}).items())]
        people = {word.by for word in words}
        if self.forged or self.superseded or self.ended or len(words) < self.voices or len(people) < len(words):
            return frozenset()
        if any(word.until is None or now > word.until for word in words):
            return frozenset()
        if any(word.at > now + CLOCKS_DIFFER for word in words):
            return frozenset()
        if any(self.taken.get(word.answer_id, run) != run for word in words):
            return frozenset()
        if self.tried_under - {words[-1].answer_id}:
            return frozenset()
        first, last = words[0].steps, words[-1].steps
        return last if last <= first else frozenset()


class Truth:
    """The cluster as it is, asked and changed behind the admin API's back."""

    def __init__(self, site: Worksite) -> None:
        self._site = site
        self._state = site.simulator._state
        self._call = site.simulator._loop.call

    def bundles(self, namespace: str) -> tuple[str, ...]:
        """The ranges of a namespace."""
        return tuple(ranges.bundles_of(self._call(lambda: self._state.namespaces[namespace].boundaries)))

    def positions(self, namespace: str, bundle: str) -> list[int]:
        """Hash positions of a bundle's topics, sorted."""
        return sorted(self._call(self._state.positions_in, namespace, bundle).values())

    def owner(self, namespace: str, bundle: str) -> str | None:
        """Returns the broker that owns a bundle, among the brokers that answer."""
        return self._site.owner(bundle, namespace)

    def setting(self, namespace: str, name: SettingName) -> Setting | None:
        """Setting of a namespace."""
        policies = self._call(lambda: self._state.namespaces[namespace].policies)
        if name is SettingName.TTL:
            seconds = policies.get(TTL)
            return None if seconds is None else TimeToLive(seconds=seconds)
        kept = policies.get(RETENTION)
        if kept is None:
            return None
        return Retention(minutes=kept["retentionTimeInMinutes"], megabytes=kept["retentionSizeInMB"])

    def coordinators(self) -> int:
        """Number of transaction coordinators."""
        return self._call(lambda: self._state.coordinators)

    def partitions(self, topic: str) -> int:
        """Number of a topic's partitions."""
        return self._call(lambda: self._state.partitioned.get(topic, 0))

    def isolation(self, name: str) -> IsolationPolicy | None:
        """The isolation policy of this name."""
        return isolation_policies(self._call(lambda: self._state.isolation_policies or {})).get(name)

    def subscriptions(self, namespace: str, topic: str) -> frozenset[str]:
        """The subscriptions of a topic."""
        spec = self._call(lambda: self._state.topics[namespace].by_name[topic].spec)
        return frozenset(each.name for each in spec.subscriptions)

    def shows(self, change: Change) -> bool:  # noqa: PLR0911 - one for each kind
        """Whether a change is there, whole."""
        match change:
            case UnloadBundle():
                return self.owner(change.namespace, change.bundle) == change.target
            case SplitBundle():
                owners = {half: self.owner(change.namespace, half) for half in change.halves}
                there = set(change.halves) <= set(self.bundles(change.namespace))
                return there and set(owners.values()) == {change.owner}
            case ChangeSetting():
                return self.setting(change.namespace, change.name) == change.after
            case RaiseCoordinators():
                return self.coordinators() == change.after
            case AddPartitions():
                return self.partitions(change.topic) == change.after
            case SetIsolation():
                return self.isolation(change.policy) == change.after
            case DeleteSubscription():
                return change.subscription not in self.subscriptions(change.namespace, change.topic)

    def matches(self, intent: Intent) -> bool:
        """Whether the recorded before-values are what a call would replace now."""
        change = intent.change
        if isinstance(change, ChangeSetting):
            return self.setting(change.namespace, change.name) == change.before
        if isinstance(change, RaiseCoordinators):
            return self.coordinators() == change.before
        if isinstance(change, AddPartitions):
            return self.partitions(change.topic) == change.before
        if isinstance(change, SetIsolation):
            return self.isolation(change.policy) == change.before
        if isinstance(change, DeleteSubscription):
            return not self.shows(change)
        return bool(self.owner(change.namespace, change.bundle) == intent.before["owner"])

    def somebody_takes_the_coordinators(self, broker: str) -> None:
        """Moves all coordinators to a broker, as an operator would by hand."""
        self._site.simulator.pile_up_tcs(broker)

    def somebody_sets_a_ttl(self, namespace: str, seconds: int) -> None:
        """Sets the time to live of a namespace, as an operator would by hand."""
        self._call(self._state.set_policy, namespace, TTL, seconds)

    def somebody_raises_the_number_of_coordinators(self) -> None:
        """Raises the number of coordinators by one, as an operator would by hand."""
        self._call(setattr, self._state, "coordinators", self.coordinators() + 1)

    def clients_come(self, *namespaces: str) -> None:
        """Loads what nobody owns, as a client's lookup does."""
        for namespace in namespaces:
            for bundle in self.bundles(namespace):
                self._call(self._state.load, f"{namespace}/{bundle}")


def steps_for(truth: Truth, brokers: Sequence[str], wishes: Iterable[Wish]) -> list[Step]:
    """Steps that suit the cluster as it is.

    Args:
        truth: The cluster.
        brokers: Whom bundles may be moved to.
        wishes: Of each a kind, which bundle or value, and which broker.
    """
    steps: list[Step] = []
    wanted = list(wishes)
    for wish in [wish for wish in wanted if wish[0] == GROUP][:1] or wanted:
        after: tuple[str, ...] = ()
        for change in _changes(truth, brokers, *wish):
            steps.append(a_step(change, step_id=f"b1.s{len(steps) + 1:02d}", after=after))
            after = (steps[-1].step_id,) if isinstance(change, SplitBundle) else after
    return steps


def _changes(truth: Truth, brokers: Sequence[str], kind: str, place: int, number: int) -> list[Change]:
    bundles = truth.bundles(TC_NAMESPACE)
    bundle = bundles[place % len(bundles)]
    match kind:
        case "move" | "shop":
            where = (TC_NAMESPACE, bundle) if kind == "move" else (SHOP, WHOLE)
            return [_move(truth, brokers, *where, number)]
        case "split":
            return _split(truth, _move(truth, brokers, TC_NAMESPACE, bundle, number), number + 1)
        case "ttl":
            return [_ttl(truth, SHOP, place)]
        case "raise":
            return [RaiseCoordinators(before=truth.coordinators(), after=truth.coordinators() + 1 + number)]
        case "group":
            return [set_(truth, namespace, place) for namespace in (SHOP, RETURNS) for set_ in (_ttl, _retention)]
        case _:
            return [_retention(truth, SHOP, place)]


def _move(truth: Truth, brokers: Sequence[str], namespace: str, bundle: str, number: int) -> UnloadBundle:
    source = truth.owner(namespace, bundle) or brokers[0]
    others = [broker for broker in brokers if broker != source]
    return UnloadBundle(namespace=namespace, bundle=bundle, source=source, target=others[number % len(others)])


def _split(truth: Truth, whole: UnloadBundle, moves: int) -> list[Change]:
    """A split and the move of one half or both; the move of the whole where it cannot be split."""
    halves = halves_by_topic_count(BundleRange.parse(whole.bundle), truth.positions(whole.namespace, whole.bundle))
    if halves is None:
        return [whole]
    named = (str(halves[0]), str(halves[1]))
    split = SplitBundle(
        namespace=whole.namespace,
        bundle=whole.bundle,
        owner=whole.source,
        algorithm="topic_count_equally_divide",
        halves=named,
    )
    return [split, *(msgspec.structs.replace(whole, bundle=half) for half in named[:moves])]


def _ttl(truth: Truth, namespace: str, place: int) -> ChangeSetting:
    return _setting(truth, namespace, SettingName.TTL, TimeToLive(seconds=60 * (place + 1)))


def _retention(truth: Truth, namespace: str, place: int) -> ChangeSetting:
    return _setting(truth, namespace, SettingName.RETENTION, Retention(minutes=60 * (place + 1), megabytes=-1))


def _setting(truth: Truth, namespace: str, name: SettingName, after: Setting) -> ChangeSetting:
    before = truth.setting(namespace, name)
    return ChangeSetting(namespace=namespace, name=name, before=before, after=None if before == after else after)
