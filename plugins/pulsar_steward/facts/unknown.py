"""Unknown facts, each with a reason that a guard can use in its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pulsar_steward.model.step import BundleChange, ChangeSetting


class Unknown(msgspec.Struct, frozen=True):
    """An unknown fact; a guard that needs the fact does not pass.

    Attributes:
        reason: The unknown fact, in a sentence for the guard's result.
    """

    reason: str


VERSIONS_UNKNOWN = Unknown("which version of Pulsar brokers run is not known")
CLOCKS_UNKNOWN = Unknown("how far brokers' clocks are apart is not known")
BOOKIES_UNKNOWN = Unknown("how many bookies there are is not known")
QUOTA_CHECKS_UNKNOWN = Unknown("whether brokers check backlog quotas is not known")


def owner_unknown(change: BundleChange) -> Unknown:
    """The bundle's owner is not known: no broker claims it, and this load manager has no owner during a handover."""
    return Unknown(
        f"no broker says that it owns {change.namespace}/{change.bundle}: nobody does, or it is being handed over."
        " ExtensibleLoadManagerImpl does not show which"
    )


def clusters_unknown(namespace: str) -> Unknown:
    """The clusters that serve a namespace are not known."""
    return Unknown(f"which clusters serve {namespace} is not known")


def scalable_unknown(namespace: str) -> Unknown:
    """The scalable topics of a namespace are not known."""
    return Unknown(f"which scalable topics {namespace} has is not known")


def delayed_unknown(change: ChangeSetting) -> Unknown:
    """The number of delayed messages in the setting's topics is not known."""
    return Unknown(f"whether {change.holder} has delayed messages is not known")


def loss_unknown(change: ChangeSetting) -> Unknown:
    """The loss by a setting is not known."""
    return Unknown(f"how much {change.holder} would lose at once is not known")


def ages_unknown(change: ChangeSetting) -> Unknown:
    """The ages of the backlogs are not known."""
    return Unknown(f"how old the backlogs of {change.holder} are is not known")


def inherited_unknown(change: ChangeSetting) -> Unknown:
    """The value that applies to a namespace or topic without its own setting is not known."""
    return Unknown(f"which {change.name} {change.holder} would inherit is not known")


def backlogs_unknown(change: ChangeSetting) -> Unknown:
    """The sizes of the backlogs are not known."""
    return Unknown(f"the backlogs of {change.holder} are not known")
