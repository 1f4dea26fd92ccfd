"""Settings of brokers whose defaults change, that are new or that are gone, with the effect on this cluster."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.facts.shedding import sheds
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.broker_defaults import (
    APART,
    DEFAULTS,
    EXTENSIBLE,
    LINES,
    SHEDDER,
    default_in,
    default_number,
    same_value,
)
from pulsar_steward.model.units import MIB, bytes_in_words, counted, named
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.planners.upgrade.model import (
    APPLICATIONS,
    CONFIGURATION,
    GUIDE,
    TARGET,
    Part,
    UpgradeLine,
    pip,
    pull,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.facts.load_manager import BrokerUsage, LoadManager
    from pulsar_steward.planners.upgrade.facts import UpgradeFacts

_READS_SHARE = 0.15
"""Share of direct memory that reads in flight may take in 5.0, unless something else is set."""

_LEAST_READS = 5 * MIB

_TRUNCATED_ENTRIES = 30_000_000
"""Entries behind its first gap from which a cursor's state as an array of longs fits into no entry (#25985)."""

_KEY_SHARED = "{key_shared} here: more is read ahead for each."
_COMPRESSED = "Metadata of {} is compressed as each is written."
_WEIGHT = "Load shedding looks at it no longer, unless the weight is set."
_BY_KIND = "{transactions}it goes by the kind of topic."

EFFECTS: dict[str, tuple[str, str]] = {
    SHEDDER: ("{shedding}", pull(26609)),
    "loadBalancerLoadPlacementStrategy": ("Set both strategies or neither: AvgShedder plans for itself.", pull(26609)),
    "loadBalancerDistributeBundlesEvenlyEnabled": ("Numbers of bundles no longer choose the broker.", pull(26609)),
    "maxUnloadPercentage": ("AvgShedder moves half of what two brokers differ by at once.", pull(26609)),
    "defaultNumberOfNamespaceBundles": ("{bundles}", pull(26610)),
    "managedLedgerMaxUnackedRangesToPersist": ("{holes}", pull(25992)),
    "managedLedgerMaxUnackedRangesToPersistInMetadataStore": ("{holes_in_store}", pull(25992)),
    "managedLedgerMaxBatchDeletedIndexToPersist": ("More acknowledgements within batches are kept.", pull(25992)),
    "managedLedgerPersistIndividualAckAsLongArray": ("{long_array}", pull(25985)),
    "acknowledgmentAtBatchIndexLevelEnabled": ("Consumers may acknowledge single messages of a batch.", pull(24203)),
    "keySharedLookAheadMsgInReplayThresholdPerConsumer": (_KEY_SHARED, pull(25992)),
    "keySharedLookAheadMsgInReplayThresholdPerSubscription": (_KEY_SHARED, pull(25992)),
    "managedLedgerInfoCompressionType": (_COMPRESSED.format("{topics}"), CONFIGURATION),
    "managedCursorInfoCompressionType": (_COMPRESSED.format("{cursors}"), CONFIGURATION),
    "managedLedgerMaxReadsInFlightSizeInMB": ("{reads}", GUIDE),
    "dispatcherMaxReadBatchSize": (
        "{cursors} here: five times the entries a read, within the same bytes.",
        CONFIGURATION,
    ),
    "dispatcherDispatchMessagesInSubscriptionThread": ("Test it where entry filters compute much.", GUIDE),
    "bookkeeperClientSeparatedIoThreadsEnabled": ("The BookKeeper client gets threads of its own.", CONFIGURATION),
    "authenticateOriginalAuthData": ("{proxies}", APPLICATIONS),
    "tlsHostnameVerificationEnabled": ("{certificates}", APPLICATIONS),
    "internalListenerName": ("Brokers reach each other by this listener: see your advertisedListeners.", CONFIGURATION),
    "webServiceTlsProvider": ("Java's own TLS takes the place of Conscrypt.", CONFIGURATION),
    "transactionBufferProviderClassName": (_BY_KIND, CONFIGURATION),
    "transactionPendingAckStoreProviderClassName": (_BY_KIND, CONFIGURATION),
    "loadBalancerMemoryResourceWeight": (_WEIGHT, pull(22820)),
    "loadBalancerDirectMemoryResourceWeight": (_WEIGHT, pull(21168)),
    "bookkeeperClientReorderReadSequenceEnabled": ("Bookies that are up are read first.", pull(21652)),
    "topicCompactionRetainNullKey": ("Compaction drops messages without a key.", pip(318)),
    "scalableTopicsEnabled": ("For a way back set false on every broker before the first one starts.", GUIDE),
    "enableShadowTopics": ("Shadow topics do not load: set true before. Whether there are any is not told.", GUIDE),
    "managedLedgerBatchReadEnabled": ("Copies of what is read take direct memory; false puts it off.", GUIDE),
    "packagesManagementJsonSerializationEnabled": ("{packages}", GUIDE),
    "schemaJsonAllowLegacyJacksonFormat": (
        "Clients that register JSON schemas in Jackson's old format are refused; true lets them in.",
        pip(464),
    ),
    "topicPoliciesCacheInitTimeoutSeconds": (
        "A topic fails to load where its own policies take longer.",
        CONFIGURATION,
    ),
    "cacheEvictionByExpectedReadCount": ("Entries stay cached for subscriptions that have yet to read.", CONFIGURATION),
    "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed": (
        "An entry that is read stays in the cache no longer for that.",
        CONFIGURATION,
    ),
    "managedLedgerReadEntriesCallbackInline": ("Reads end in the thread of the response.", CONFIGURATION),
    "managedLedgerAddEntryHandoverMaxBatchItems": ("Entries are handed over for writing in batches.", CONFIGURATION),
    "replicationMaxReadProcessingStepsPerTurn": ("A replicator gives way to others after so many.", CONFIGURATION),
    "replicatedSubscriptionsSnapshotMaxCachedPerSubscription": (
        "More snapshots are kept for each replicated subscription.",
        "docs/upgrade.md",
    ),
    "transactionCoordinatorScalableTopicsEnabled": ("{transactions}leaders of new ones are elected.", pip(473)),
}
"""Effect of a changed or new default, with the names of `_figures` in braces, and its source."""

_CLASSIC = ("The classic dispatchers are gone: test order and redelivery without it.", GUIDE, State.STOP)
_FACTORY = ("5.0 rejects it: move to a factory of tlsFactoryClassName.", pip(478), State.STOP)
GONE: dict[str, tuple[str, str, State]] = {
    "brokerClientSslFactoryPlugin": _FACTORY,
    "sslFactoryPlugin": _FACTORY,
    "subscriptionKeySharedUseClassicPersistentImplementation": _CLASSIC,
    "subscriptionSharedUseClassicPersistentImplementation": _CLASSIC,
    "managedLedgerUnackedRangesOpenCacheSetEnabled": ("Bitmaps are always used.", GUIDE, State.NOTE),
    "preciseTopicPublishRateLimiterEnable": ("All rate limiters are precise now.", pip(322), State.NOTE),
    "streamingDispatch": ("The streaming dispatcher is gone.", pull(20279), State.NOTE),
}
"""Settings that are gone: words for a cluster that sets one, the source, and whether it has to go first."""


def lines_of_settings(facts: UpgradeFacts) -> Iterator[UpgradeLine]:
    """Lines on all settings that differ between the running brokers and 5.0, or whose values are not told."""
    figures, absent = _figures(facts), _absent(facts)
    for key in (*GONE, *EFFECTS):
        words, source, *_ = GONE[key] if key in GONE else EFFECTS[key]
        alike: defaultdict[tuple[Part, State, str | None], list[str]] = defaultdict(list)
        for broker, line in facts.lines.items():
            if found := _kind(key, line, facts.settings.get(key, {}).get(broker)):
                alike[found].append(broker)
        for (part, state, before), brokers in sorted(alike.items(), key=str):
            on = "" if len(brokers) == len(facts.lines) else f"On {named(sorted(brokers))}: "
            said = words.format_map(figures) if part is not Part.KEPT else ""
            yield UpgradeLine(
                part=part,
                subject=key,
                state=state,
                words=on + (said if state is not State.UNKNOWN else "its value is not told."),
                sources=(source,),
                before=before,
                after=default_in(key, TARGET),
                idle=part in {Part.CHANGES, Part.NEW} and any(f"{{{name}}}" in words for name in absent),
            )


def _kind(key: str, line: str, value: str | None) -> tuple[Part, State, str | None] | None:
    """Part, state, and default or value of today, of a setting on a broker of a line; None: nothing changes."""
    usual, after = default_in(key, line), default_in(key, TARGET)
    first = next(iter(DEFAULTS[key]))
    if usual is None and line in LINES:
        return (Part.NEW, State.NOTE, None) if LINES.index(line) < LINES.index(first) and key in EFFECTS else None
    if value is None or usual is None:
        return Part.GONE if key in GONE else Part.CHANGES, State.UNKNOWN, None
    if key in GONE:
        return None if same_value(value, usual) else (Part.GONE, GONE[key][2], value)
    if same_value(value, after or ""):
        return None
    return (Part.CHANGES, State.NOTE, usual) if same_value(value, usual) else (Part.KEPT, State.NOTE, value)


def _figures(facts: UpgradeFacts) -> dict[str, str]:
    """Sentences and numbers of the cluster, for `EFFECTS`."""
    coordinators = facts.meta.coordinators
    return {
        "bundles": _bundles(facts),
        "certificates": _unless_off(
            facts,
            "brokerClientTlsEnabled",
            "Brokers' certificates have to name their hosts: else brokers, replication and proxies do not connect.",
        ),
        "cursors": counted(facts.cursors_of(), "cursor"),
        "holes": _holes(facts),
        "holes_in_store": _holes_in_store(facts),
        "key_shared": counted(facts.cursors_of("Key_Shared"), "Key_Shared subscription"),
        "long_array": _long_array(facts),
        "packages": _unless_off(
            facts, "enablePackagesManagement", "4.x cannot read what it writes: for a way back set false."
        ),
        "proxies": _unless_off(
            facts,
            "authenticationEnabled",
            "Clients behind a proxy with TLS certificates or SASL are refused: set false before, if there is one.",
        ),
        "reads": _reads(facts),
        "shedding": _shedding(facts),
        "topics": counted(facts.topics, "loaded topic"),
        "transactions": f"{counted(coordinators, 'coordinator')} here: " if coordinators else "No transactions here: ",
    }


def _absent(facts: UpgradeFacts) -> frozenset[str]:
    """Names of `_figures` about things that the cluster has none of."""
    numbers = {
        "cursors": facts.cursors_of(),
        "holes": sum(each.over_persisted for each in facts.cursors),
        "holes_in_store": sum(each.over_store for each in facts.cursors),
        "key_shared": facts.cursors_of("Key_Shared"),
        "long_array": facts.cursors_of(),
        "topics": facts.topics,
        "transactions": facts.meta.coordinators,
    }
    return frozenset(name for name, number in numbers.items() if not number)


def _unless_off(facts: UpgradeFacts, key: str, words: str) -> str:
    value = facts.value(key)
    if value == "false":
        return f"Nothing here, while {key} is false."
    return words if value else f"{words} Whether {key} is on is not told."


def _holes(facts: UpgradeFacts) -> str:
    over = sum(each.over_persisted for each in facts.cursors)
    most = max((each.most_holes for each in facts.cursors), default=0)
    if not over:
        return (
            f"None of {counted(facts.cursors_of(), 'cursor')} is over today's limit; the most ack holes are {most:,}."
        )
    lost = most - int(default_number("managedLedgerMaxUnackedRangesToPersist"))
    have = counted(over, "cursor has", "cursors have")
    beyond = f"; {lost:,} of these would still be lost" if lost > 0 else ""
    return f"{have} too many ack holes to keep all at a restart today, {most:,} at most{beyond}."


def _holes_in_store(facts: UpgradeFacts) -> str:
    over = sum(each.over_store for each in facts.cursors)
    if not over:
        return f"None of {counted(facts.cursors_of(), 'cursor')} has so many ack holes."
    return (
        f"The state of {counted(over, 'cursor')} is written to a ledger today when its topic is closed, and then to the"
        " metadata store: watch the size of its nodes."
    )


def _long_array(facts: UpgradeFacts) -> str:
    most = max((each.most_entries for each in facts.cursors), default=0)
    near = "more than that, and may lose it" if most >= _TRUNCATED_ENTRIES else f"{most:,} at most"
    return f"State that spans some 30 million entries can no longer be written; a cursor here spans {near}."


def _bundles(facts: UpgradeFacts) -> str:
    numbers = sorted(each.bundles for each in facts.namespaces if each.bundles)
    if not numbers:
        return "New namespaces get 32 bundles; how many the present ones have is not told."
    alike = numbers[0] == numbers[-1]
    span = f"{counted(numbers[0], 'bundle')} each" if alike else f"their {numbers[0]:,} to {numbers[-1]:,} bundles"
    return f"Existing namespaces keep {span}; new ones get 32."


def _reads(facts: UpgradeFacts) -> str:
    if not facts.direct_memory:
        return "Reads take 15 % of direct memory at most; how much brokers have is not told."
    most = max(min(facts.direct_memory.values()) * _READS_SHARE, _LEAST_READS)
    return f"Reads take {bytes_in_words(most, rounded=True)} of a broker's direct memory at most, 15 % of it."


def _shedding(facts: UpgradeFacts) -> str:
    """Bundles that AvgShedder would move first, by the figures of this moment."""
    manager, shedder, usages = facts.manager, facts.shedder, facts.usages
    if isinstance(manager, Unknown):
        return f"Not told: {manager.reason}."
    if manager.name == EXTENSIBLE:
        return f"Nothing here: {EXTENSIBLE} sheds by TransferShedder."
    if not manager.sheds:
        return "Nothing here, while shedding is off."
    if isinstance(shedder, Unknown):
        return f"Not told: {shedder.reason}."
    return f"Not told: {usages.reason}." if isinstance(usages, Unknown) else _first_moves(facts, shedder, usages)


def _first_moves(facts: UpgradeFacts, shedder: LoadManager, usages: tuple[BrokerUsage, ...]) -> str:
    percents = {each.broker: each.percent for each in usages}
    least, most, low = min(percents.values()), max(percents.values()), shedder.limits[APART]
    if most - least < low:
        return f"Nothing by the usages of now, {least:,.0f} to {most:,.0f} %: it needs {low:,.0f} between two brokers."
    taken = sheds(shedder, usages)
    moves = [
        f"{counted(len(bundles), 'bundle')} from {shed.source} ({percents[shed.source]:,.0f} %) to {shed.target}"
        f" ({percents[shed.target]:,.0f} %) within {counted(shed.rounds or 1, 'round')} of shedding, {bundles[0]} first"
        for shed in (() if isinstance(taken, Unknown) else taken)
        if shed.target and (bundles := shed.bundles(facts.owned.get(shed.source, {})))
    ]
    if not moves:
        return "Nothing by the figures of now: no bundle is small enough to even out two brokers."
    return f"By the figures of now it would move {named(moves)}."
