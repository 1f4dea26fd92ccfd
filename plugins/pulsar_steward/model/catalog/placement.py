"""Checks of where things are: transaction coordinators, topics, bundles, load."""

from __future__ import annotations

from pulsar_steward.model.catalog.info import CheckInfo, Scope

TC_SKEW = CheckInfo(
    check_id="tc-skew",
    title="Transaction coordinators are unevenly spread over the brokers",
    advice=(
        "Move bundles of pulsar/system from the broker with the most coordinators to the one with the fewest.",
        "Balance the coordinators before business bundles, so that the two do not undo each other.",
        "Look at the spread after every restart and scale-out: brokers never move these bundles by themselves.",
    ),
    source="docs/knowledge.md A; apache/pulsar#22953",
    remedied_by="tc_balance",
)

BUNDLE_TOPIC_SKEW = CheckInfo(
    check_id="bundle-topic-skew",
    title="The topics of a namespace crowd in few of its bundles",
    advice=(
        "Split the crowded bundles by topic_count_equally_divide.",
        "Give the namespace more bundles from the start when thousands of topics are to be expected.",
    ),
    source="docs/knowledge.md C",
    scope=Scope.NAMESPACE,
    remedied_by="bundle_split",
)

BROKER_LOAD_SKEW = CheckInfo(
    check_id="broker-load-skew",
    title="A broker carries far more than the others, or next to nothing",
    advice=(
        "Balance the transaction coordinators first (check tc-skew), so that the two do not undo each other.",
        "See whether the brokers' own shedding is on (`loadBalancerSheddingEnabled`), and with which strategy.",
        "Move some by hand: `pulsar-admin namespaces unload NS --bundle RANGE --destinationBroker HOST:PORT`.",
        "Count the clients of a bundle before you move it: all of them reconnect at once.",
        "See whether isolation policies keep an empty broker empty: `pulsar-admin ns-isolation-policy list CLUSTER`.",
    ),
    source="docs/knowledge.md C: partitions uneven over brokers; apache/pulsar#12230",
    remedied_by="bundle_balance",
)

HOT_BUNDLE = CheckInfo(
    check_id="hot-bundle",
    title="One bundle is far hotter than the others, or over what its broker would split",
    advice=(
        "Where no topic dominates: split it by flow_or_qps_equally_divide, or by topic_count_equally_divide.",
        "Where one topic dominates, no split helps: give that topic more partitions, or fewer clients.",
        "Then let the parts go to different brokers, and pace it: their clients reconnect.",
    ),
    source="docs/knowledge.md C: partitions uneven over brokers",
    remedied_by="bundle_split",
)

BUNDLE_FLAPPING = CheckInfo(
    check_id="bundle-flapping",
    title="A bundle changes its owner again and again",
    advice=(
        "See who moved it: the leader's log names what shedding unloaded; Steward's own moves are in its ledger.",
        "Make shedding calmer: a larger threshold, longer `loadBalancerSheddingGracePeriodMinutes`, another strategy.",
        "Turn shedding off (`loadBalancerSheddingEnabled`) while you look: each move reconnects all clients.",
        "Split a bundle that is too hot for any broker (check hot-bundle): whoever takes it sheds it again.",
        "Let no two balancers work on the same cluster, such as scripts beside the brokers' own shedding.",
    ),
    source="docs/checks/bundle-flapping.md; apache/pulsar#21722, apache/pulsar#20822, apache/pulsar#16059",
)

CHECKS = (TC_SKEW, BUNDLE_TOPIC_SKEW, BROKER_LOAD_SKEW, HOT_BUNDLE, BUNDLE_FLAPPING)
"""In the order in which reports list them."""
