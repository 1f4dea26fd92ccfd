"""Answers that cannot be given: what is not known, as a sentence that a guard can say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pulsar_steward.model.step import BundleChange, ChangeSetting


class Unknown(msgspec.Struct, frozen=True):
    """An answer that cannot be given; a guard whose question it is does not pass.

    Attributes:
        reason: What is not known, as a sentence that a guard can say.
    """

    reason: str


VERSIONS_UNKNOWN = Unknown("which version of Pulsar brokers run is not known")
CLOCKS_UNKNOWN = Unknown("how far brokers' clocks are apart is not known")
QUOTA_CHECKS_UNKNOWN = Unknown("whether brokers check backlog quotas is not known")


def owner_unknown(change: BundleChange) -> Unknown:
    """Nobody says to own the bundle, under a load manager that has nobody own it while it hands it over."""
    return Unknown(
        f"no broker says that it owns {change.namespace}/{change.bundle}: nobody does, or it is on its way from one to"
        " another, which ExtensibleLoadManagerImpl does not tell apart"
    )


def clusters_unknown(namespace: str) -> Unknown:
    """Nobody tells of a namespace's clusters."""
    return Unknown(f"which clusters serve {namespace} is not known")


def delayed_unknown(change: ChangeSetting) -> Unknown:
    """Nobody tells of delayed messages where the setting is changed."""
    return Unknown(f"whether {change.holder} has delayed messages is not known")


def loss_unknown(change: ChangeSetting) -> Unknown:
    """Nobody tells of all topics that the quota is for."""
    return Unknown(f"what {change.holder} would lose at once is not known")


def ages_unknown(change: ChangeSetting) -> Unknown:
    """Nobody tells of the ages of any backlog."""
    return Unknown(f"how old the backlogs of {change.holder} are is not known")


def inherited_unknown(change: ChangeSetting) -> Unknown:
    """Nobody tells which value applies to a namespace or topic where a setting is not set there."""
    return Unknown(f"which {change.name} applies to {change.holder} once none is set there is not known")


def backlogs_unknown(change: ChangeSetting) -> Unknown:
    """Nobody tells of the sizes of backlogs."""
    return Unknown(f"the backlogs of {change.holder} are not known")
