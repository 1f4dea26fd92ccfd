"""How a reported fault is written down."""

from typing import Any

from lab.faults.fault import Expected, Report, SimulatedFault
from lab.simulator import ClusterSpec

WHY = "reported by somebody else, and made from the figures of the report"


def reported(
    name: str,
    address: str,
    about: str,
    right: str,
    *specs: ClusterSpec,
    expected: tuple[Expected, ...] = (),
    never: tuple[str, ...] = (),
    remedy: tuple[str, ...] = (),
    unseen: str = "",
    **label: Any,
) -> SimulatedFault:
    """A fault from a report, with a cluster a look.

    Args:
        name: The fault's, without ``field-``.
        address: As of `Report`.
        about: What was made, in a sentence.
        right: As of `Report`.
        *specs: The cluster, one for each look.
        expected: What has to be found; none: silence is right.
        never: As of `Report`.
        remedy: As of `Report`.
        unseen: As of `Report`.
        **label: All else that a `SimulatedFault` has.
    """
    return SimulatedFault(
        name=f"field-{name}",
        about=about,
        expected=expected,
        specs=specs,
        observations=len(specs),
        why=WHY,
        report=Report(address, right, never, remedy, unseen),
        **label,
    )


def moves(namespace: str) -> str:
    """Pattern of a step that moves or splits a bundle of it: all its clients reconnect, and nothing is cured."""
    return rf"(^(Move|Split) |: (move|split) ).*{namespace}\b"


def changes_settings(namespace: str) -> str:
    """Pattern of a step that changes a setting of it."""
    return rf"^Set .*{namespace}\b"


def deletes(namespace: str) -> str:
    """Pattern of a step that deletes a subscription in it."""
    return rf"(^Delete |: [Dd]elete ).*{namespace}\b"
