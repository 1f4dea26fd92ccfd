"""The responses that are read from every broker; requests that depend on them are made elsewhere."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pulsar_steward.collect.bundles import owned_by_namespace
from pulsar_steward.collect.metrics import Metrics, read_metrics
from pulsar_steward.collect.positions import tc_positions
from pulsar_steward.collect.rows import UNFIT
from pulsar_steward.errors import AdminError, StatusError
from pulsar_steward.model.broker_defaults import BEFORE_5, OF_UPGRADES, is_extensible
from pulsar_steward.model.broker_defaults import KEYS as DEFAULTS_KEYS
from pulsar_steward.model.broker_defaults import SETTINGS as OF_LOAD_MANAGER
from pulsar_steward.model.pulsar_versions import VERSION
from pulsar_steward.model.setting import SHARED
from pulsar_steward.pulsar.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pulsar_steward.collect.bundles import Owned
    from pulsar_steward.collect.positions import Positions
    from pulsar_steward.policy.schema import CollectPolicy
    from pulsar_steward.pulsar.body import Body
    from pulsar_steward.pulsar.settings import AdminSettings

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Answers:
    """Responses of one broker.

    Attributes:
        owned: The bundles that it owns.
        load: Its load report; empty if it has none.
        positions: Hash positions of the topics in the coordinators' bundles that it owns.
        version: Its Pulsar version; None: not reported.
        clock_skew_milliseconds: Lead of its clock; None: not reported.
        configuration: Its runtime configuration; empty if it could not be read.
        metrics: Its Prometheus series.
    """

    owned: Owned
    load: dict[str, Any]
    positions: Positions
    version: str | None
    clock_skew_milliseconds: int | None
    configuration: dict[str, str]
    metrics: Metrics


def asked(settings: AdminSettings, broker: str, pulsar_cluster: str, policy: CollectPolicy) -> tuple[Body, Answers]:
    """Reads a broker; returns its topic statistics as received, and its other responses.

    Args:
        settings: Admin API settings of the cluster.
        broker: ``host:webport``.
        pulsar_cluster: The cluster's own name.
        policy: Limits of collecting.

    Raises:
        AdminError: If a required response cannot be read.
    """
    with Reader(settings, broker=broker) as reader:
        # Statistics first: the bundles read afterwards are newer, and show which statistics still apply.
        document = reader.topic_statistics()
        owned = owned_by_namespace(reader.owned_bundles(pulsar_cluster, broker))
        configuration = _or_none(reader.runtime_configuration) or {}
        version, ahead = _or_none(reader.version_and_clock) or ("", None)
        return document, Answers(
            owned=owned,
            load=_load_report(reader, configuration),
            positions=tc_positions(reader, owned),
            version=version if VERSION.fullmatch(version) else None,
            clock_skew_milliseconds=ahead,
            configuration=configuration,
            metrics=read_metrics(reader.metrics, "broker", policy.metrics_megabytes),
        )


def _or_none(ask: Callable[[], T]) -> T | None:
    """Reads an optional response; None, and a warning, if it cannot be read."""
    try:
        return ask()
    except (AdminError, *UNFIT) as error:
        log.warning("left out: %s", error)
        return None


def _load_report(reader: Reader, configuration: dict[str, str]) -> dict[str, Any]:
    """Load report of the broker; empty if it has none: `ExtensibleLoadManagerImpl` responds 500."""
    if is_extensible(configuration):
        return {}
    try:
        return reader.load_report()
    except StatusError:
        return {}


# A setting is added with the check that needs it, and removed with it:
# `tests/architecture/test_collected_is_used.py` compares the two, and docs/reading.md lists them.
#
# A broker reports all of its settings, including passwords (``brokerClientTlsKeyStorePassword``,
# ``managedLedgerPassword``, tokens in ``brokerClientAuthenticationParameters``). So this lists the settings to
# store, not the settings to omit, and no pattern stands for a whole family.


KEPT = frozenset(
    {
        *DEFAULTS_KEYS,
        *OF_LOAD_MANAGER,
        *SHARED,
        *BEFORE_5,
        *OF_UPGRADES,
        "acknowledgmentAtBatchIndexLevelEnabled",
        "backlogQuotaCheckEnabled",
        "backlogQuotaCheckIntervalInSeconds",
        "bookkeeperClientNumWorkerThreads",
        "delayedDeliveryMaxIndexesPerBucketSnapshotSegment",
        "delayedDeliveryMaxNumBuckets",
        "delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds",
        "delayedDeliveryMinIndexCountPerBucket",
        "delayedDeliveryTrackerFactoryClassName",
        "dispatchThrottlingRateInByte",
        "dispatchThrottlingRateInMsg",
        "dispatchThrottlingRatePerSubscriptionInByte",
        "dispatchThrottlingRatePerSubscriptionInMsg",
        "dispatchThrottlingRatePerTopicInByte",
        "dispatchThrottlingRatePerTopicInMsg",
        "entryFilterNames",
        "exposePreciseBacklogInPrometheus",
        "isDelayedDeliveryDeliverAtTimeStrict",
        "loadBalancerBrokerMaxTopics",
        "loadBalancerNamespaceBundleMaxBandwidthMbytes",
        "loadBalancerNamespaceBundleMaxMsgRate",
        "loadBalancerNamespaceBundleMaxSessions",
        "managedLedgerCacheEvictionTimeThresholdMillis",
        "managedLedgerCacheSizeMB",
        "managedLedgerMaxLedgerRolloverTimeMinutes",
        "managedLedgerOffloadDriver",
        "managedLedgerMaxBatchDeletedIndexToPersist",
        "managedLedgerMaxReadsInFlightSizeInMB",
        "managedLedgerMaxUnackedRangesToPersist",
        "managedLedgerMaxUnackedRangesToPersistInMetadataStore",
        "managedLedgerPersistIndividualAckAsLongArray",
        "managedLedgerStatsPeriodSeconds",
        "maxConcurrentTopicLoadRequest",
        "maxConsumersPerSubscription",
        "maxConsumersPerTopic",
        "maxNumPartitionsPerPartitionedTopic",
        "maxProducersPerTopic",
        "maxPublishRatePerTopicInBytes",
        "maxPublishRatePerTopicInMessages",
        "maxSubscriptionsPerTopic",
        "maxTopicsPerNamespace",
        "maxMessagePublishBufferSizeInMB",
        "maxMessageSize",
        "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesPerSubscription",
        "metadataStoreSessionTimeoutMillis",
        "numIOThreads",
        "numOrderedExecutorThreads",
        "preciseTimeBasedBacklogQuotaCheck",
        "topicLoadTimeoutSeconds",
        "transactionCoordinatorScalableTopicsEnabled",
    }
)
"""Settings that are stored, by their names in ``broker.conf``."""

SWITCHES = frozenset({"authenticateOriginalAuthData", "authenticationEnabled"})
"""Settings of authentication that are stored: true or false, and nothing else that they could hold."""


def kept(configuration: Mapping[str, str]) -> dict[str, str]:
    """Settings of a broker's runtime configuration that may be stored, by name."""
    found = {key: configuration[key] for key in sorted(KEPT & configuration.keys())}
    return {key: value for key, value in found.items() if key not in SWITCHES or value in {"true", "false"}}
