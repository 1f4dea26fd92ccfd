"""The cluster that chaos is made on: bundles, settings, coordinators and subscriptions to change, and their state."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.chaos.holdings import ARCHIVED, REPLICATED
from benchmarks.chaos.subscriptions import ABANDONED, IdleSubscriptions
from lab.bookie import set_read_only
from lab.errors import AdminCallError
from lab.faults.real.operator import operator_of, operators_of
from lab.placement import SYSTEM_NAMESPACE
from lab.process import condition
from lab.request_log import RequestLogs
from lab.waiting import wait_until
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.whole_look import WholeLook
from pulsar_steward.model.bundles import BundleRange, halves_by_topic_count, position_of, tc_topic
from pulsar_steward.model.cluster import ClusterIdentity, identity_of
from pulsar_steward.model.isolation import isolation_policies
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName
from pulsar_steward.model.step import (
    ChangeSetting,
    DeleteSubscription,
    RaiseCoordinators,
    SetIsolation,
    SplitBundle,
    UnloadBundle,
)
from pulsar_steward.model.units import GIB
from pulsar_steward.policy.schema import Policy, WantedGroup
from pulsar_steward.pulsar.owner import OwnerReader, cursors_in
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.statistics import bundles_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from benchmarks.chaos.holdings import Holdings
    from lab.cluster import Lab
    from pulsar_steward.model.isolation import IsolationPolicy, Reach
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import Change

NAMESPACES = tuple(f"public/chaos-{number}" for number in range(4))
BUNDLES = 4
TOPICS = 12
WITH_SUBSCRIPTIONS = 2
"""Topics of each namespace that have some."""
MOST_COORDINATORS = 32
"""Twice as many as at first; each raise is by one, and none is taken back."""
KINDS = {"move": 10, "setting": 8, "coordinators": 4, "split": 2, "deletion": 5, "raise": 1, "group": 2}
"""Kinds of change, and how often each is drawn."""
GROUP: dict[str, Any] = {"name": "chaos", "namespaces": [NAMESPACES[-1]], "primary": [r"127\.0\.0\.[23]"]}
"""The group of brokers that is set now and then, as the policy wants it; one broker is left to all others."""
_TOPICS = [f"persistent://{namespace}/t-{number}" for namespace in NAMESPACES for number in range(TOPICS)]


@dataclass(frozen=True)
class State:
    """State of what may be changed here, as the cluster shows it.

    Attributes:
        owners: Bundles (``tenant/ns/range``) to the broker that owns them.
        ranges: All bundles, owned or not, by the same names.
        settings: Namespaces to what is set on them.
        coordinators: Number of transaction coordinators.
        entries: Topics and their subscriptions to the entries that these have not read.
        held: Topics to the bytes or messages that nobody may delete.
        isolation: Namespace isolation policies by name.
    """

    owners: Mapping[str, str]
    ranges: frozenset[str]
    settings: Mapping[str, Mapping[SettingName, Setting]]
    coordinators: int
    entries: Mapping[tuple[str, str], int]
    held: Mapping[str, int]
    isolation: Mapping[str, IsolationPolicy]

    def bundles(self, namespace: str) -> list[str]:
        """A namespace's owned ranges."""
        return sorted(name.rpartition("/")[2] for name in self.owners if name.rpartition("/")[0] == namespace)


class Ground:
    """A lab that is broken and mended again and again.

    Args:
        lab: Three brokers, running.
        holdings: Topics of it that hold what nobody may delete; None: there are none.

    Attributes:
        logs: What brokers were asked to change from now on.
        subscriptions: Those of some topics, which nobody uses.
    """

    def __init__(self, lab: Lab, holdings: Holdings | None = None) -> None:
        self.lab = lab
        self._holdings = holdings
        self.logs = RequestLogs(lab)
        for namespace in NAMESPACES:
            lab.make_topic(f"persistent://{namespace}/t-0", BUNDLES)
            for number in range(1, TOPICS):
                operator_of(lab).create_topic(f"persistent://{namespace}/t-{number}")
        named = [f"persistent://{namespace}/t-{n}" for namespace in NAMESPACES for n in range(WITH_SUBSCRIPTIONS)]
        self.subscriptions = IdleSubscriptions(lab, named)

    @property
    def brokers(self) -> list[str]:
        """Ids of all brokers, in order of starting."""
        return [broker.broker_id for broker in self.lab.brokers]

    def settings(self, policy: Policy) -> AdminSettings:
        """Settings by which Steward reaches the cluster."""
        return AdminSettings(urls=self.lab.admin_urls, limits=policy.admin)

    def heal(self) -> None:
        """Starts and resumes what a fault ended or paused, and has every bundle loaded again."""
        self.lab.resume_zookeeper()
        set_read_only(self.lab, on=False)
        for broker in self.lab.brokers:
            match condition(broker.process):
                case "gone":
                    self.lab.start_broker(broker.broker_id)
                case "paused":
                    self.lab.resume_broker(broker.broker_id)
                case _:
                    pass
        self.settle()

    def settle(self) -> None:
        """Has every bundle loaded, and waits until all of them stay where they are."""
        wait_until(self._settled, "every broker runs, and bundles stay where they are", 120, every_s=0.2)

    def _settled(self) -> bool:
        with contextlib.suppress(AdminCallError):
            if set(self.lab.active_brokers()) != set(self.brokers):
                return False
            before = self.lab.owned_bundles()
            self.lab.tc_placement()
            admins = operators_of(self.lab)
            for number, name in enumerate([*_TOPICS, *map(tc_topic, range(admins[0].coordinators()))]):
                admins[number % len(admins)].look_up(name)
            self.subscriptions.entries()  # their topics can be read as well
            after = self.lab.owned_bundles()
            return before == after and len(after) == len(self.brokers)
        return False

    def state(self) -> State:
        """State that the cluster shows now."""
        owners = {
            bundle: broker
            for broker, bundles in self.lab.owned_bundles().items()
            for bundle in bundles
            if bundle.rpartition("/")[0] in {*NAMESPACES, SYSTEM_NAMESPACE}
        }
        with Reader(self.settings(Policy())) as reader:
            watched = NAMESPACES if self._holdings is None else (*NAMESPACES, ARCHIVED, REPLICATED)
            settings = {namespace: reader.own_settings(namespace) for namespace in watched}
        admin = operator_of(self.lab)
        ranges = {f"{name}/{bundle}" for name in (*NAMESPACES, SYSTEM_NAMESPACE) for bundle in admin.bundles(name)}
        entries, held = self.subscriptions.entries(), self._holdings.held() if self._holdings else {}
        return State(owners, frozenset(ranges), settings, admin.coordinators(), entries, held, self._isolation())

    def _isolation(self) -> dict[str, IsolationPolicy]:
        with Reader(self.settings(Policy())) as reader:
            return isolation_policies(reader.isolation_policies(self.lab.cluster))

    def reach(self, change: SetIsolation) -> Reach:
        """Namespaces and brokers that the change of an isolation policy is about now."""
        with LiveReader(self.settings(Policy())) as look:
            return WholeLook(look, Policy()).isolation().reach(change)

    def undo_groups(self) -> None:
        """Has every broker serve every namespace again."""
        if GROUP["name"] in self._isolation():
            operator_of(self.lab).drop_isolation(GROUP["name"])
            self.settle()

    def identity(self) -> ClusterIdentity:
        """Which cluster it is, by what its brokers say."""
        with Reader(self.settings(Policy())) as reader:
            return identity_of(reader.runtime_configuration())

    def observe(self) -> int:
        """Looks at the whole cluster as a snapshot does, one broker after another; returns how many topics it saw."""
        with Reader(self.settings(Policy())) as reader:
            topics = 0
            for broker in reader.brokers():
                with reader.at(broker) as one:
                    one.owned_bundles(reader.runtime_configuration()["clusterName"], broker)
                    topics += sum(len(bundle.topics) for bundle in bundles_in(one.topic_statistics(), broker))
            return topics

    def changes(self, random: Random, state: State, *, deletes: bool = False) -> list[Change]:
        """One to three changes that make sense now, of different things; one more where one has to be a deletion."""
        *namespaces, last = random.sample(NAMESPACES, 4)
        made: list[Change] = [self._deletion(last, random, state)] if deletes else []
        for namespace in namespaces[: random.choice((1, 1, 2, 3))]:
            (kind,) = random.choices(list(KINDS), list(KINDS.values()))
            change = self.change(kind, namespace, random, state)
            if change is not None and str(change) not in {str(other) for other in made}:
                made.append(change)
        return made or [self._setting(namespaces[0], random, state)]

    def change(self, kind: str, namespace: str, random: Random, state: State) -> Change | None:
        """A change of that kind; None where there is nothing to change in that way."""
        makers: dict[str, Callable[[], Change | None]] = {
            "move": lambda: self._move(namespace, random, state),
            "setting": lambda: self._setting(namespace, random, state),
            "coordinators": lambda: self._move(SYSTEM_NAMESPACE, random, state),
            "split": lambda: self._split(namespace, random, state),
            "deletion": lambda: self._deletion(namespace, random, state),
            "raise": lambda: self._raise(state),
            "group": lambda: self._group(state),
        }
        return makers[kind]()

    def _move(self, namespace: str, random: Random, state: State) -> Change | None:
        bundles = [bundle for bundle in state.bundles(namespace) if self._topics_in(namespace, bundle, state)]
        if not bundles:
            return None
        bundle = random.choice(bundles)
        source = state.owners[f"{namespace}/{bundle}"]
        target = random.choice([broker for broker in self.brokers if broker != source])
        return UnloadBundle(namespace=namespace, bundle=bundle, source=source, target=target)

    def _split(self, namespace: str, random: Random, state: State) -> Change | None:
        for bundle in random.sample(state.bundles(namespace), len(state.bundles(namespace))):
            whole = BundleRange.parse(bundle)
            # Pulsar's own topics in it count as well: asked of the owner, where Steward asks.
            positions = sorted(position_of(name) for name in operator_of(self.lab).topics_in(namespace, bundle))
            halves = halves_by_topic_count(whole, positions)
            if halves is not None:
                low, high = halves
                return SplitBundle(
                    namespace=namespace,
                    bundle=bundle,
                    owner=state.owners[f"{namespace}/{bundle}"],
                    algorithm="topic_count_equally_divide",
                    halves=(str(low), str(high)),
                )
        return None

    @staticmethod
    def _setting(namespace: str, random: Random, state: State) -> ChangeSetting:
        name = random.choice((SettingName.SIZE_QUOTA, SettingName.RETENTION))
        before = state.settings[namespace].get(name)
        after: Setting = BacklogQuota(limit_bytes=random.randint(10, 10_000) * GIB, policy=QuotaPolicy.HOLD)
        if name is SettingName.RETENTION:
            after = Retention(minutes=random.randint(10_000, 100_000), megabytes=-1)
        return ChangeSetting(namespace=namespace, name=name, before=before, after=after)

    def _deletion(self, namespace: str, random: Random, state: State) -> DeleteSubscription:
        inside = f"persistent://{namespace}/"
        topics = sorted(topic for topic, name in state.entries if name == ABANDONED and topic.startswith(inside))
        topic = random.choice(topics)
        place = position_of(topic)
        (bundle,) = (each for each in state.bundles(namespace) if place in BundleRange.parse(each))
        with OwnerReader(self.settings(Policy()), state.owners[f"{namespace}/{bundle}"]) as owner:
            cursor = cursors_in(owner.internals(topic), owner.stored(topic))[ABANDONED]
        return DeleteSubscription(namespace=namespace, topic=topic, subscription=ABANDONED, cursor=cursor, stay=0)

    @staticmethod
    def _raise(state: State) -> RaiseCoordinators | None:
        if state.coordinators >= MOST_COORDINATORS:
            return None
        return RaiseCoordinators(before=state.coordinators, after=state.coordinators + 1)

    def _group(self, state: State) -> SetIsolation | None:
        before, wanted = state.isolation.get(GROUP["name"]), WantedGroup.model_validate(GROUP).isolation
        if before == wanted:
            return None
        return SetIsolation(pulsar_cluster=self.lab.cluster, policy=GROUP["name"], before=before, after=wanted)

    @staticmethod
    def _topics_in(namespace: str, bundle: str, state: State) -> list[int]:
        whole = BundleRange.parse(bundle)
        names = [f"persistent://{namespace}/t-{number}" for number in range(TOPICS)]
        if namespace == SYSTEM_NAMESPACE:
            names = [tc_topic(number) for number in range(state.coordinators)]
        positions = (position_of(name) for name in names)
        return sorted(position for position in positions if position in whole)
