"""Advice for clusters in which bundles do not place transaction coordinators.

From Pulsar 5 on, brokers elect the leaders of coordinators for scalable topics in the metadata store (PIP-473,
apache/pulsar#25929). Each broker is a candidate for each coordinator, and no leader gives one up while it runs. Read in
Pulsar's source: no such release could be tried (docs/pulsar-behaviour.md).
"""

from __future__ import annotations

NOT_BY_BUNDLE = "This version of Pulsar does not place coordinators by bundles alone."

WHERE_THEY_ARE = (
    f"{NOT_BY_BUNDLE} Where Pulsar 5 elects their leaders (transactionCoordinatorScalableTopicsEnabled), the metadata"
    " store tells who leads which, at /txn/tc/leader/NUMBER, and unloading bundles moves none: a broker that leads too"
    " many gives them to the others when it is restarted."
)

HOW_MANY = (
    f"{NOT_BY_BUNDLE} Where Pulsar 5 elects their leaders (transactionCoordinatorScalableTopicsEnabled), there are as"
    " many as transactionCoordinatorScalableTopicsParallelism says, which has to be the same on every broker and cannot"
    " be changed later: choose as many as there are to be brokers, or more, before the cluster is first started."
)
