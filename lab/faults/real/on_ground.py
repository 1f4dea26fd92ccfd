"""Faults that are made in a namespace of their own."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from lab.cluster import Lab
from lab.faults.clients.work import Language
from lab.faults.fault import Change, Expected, Making, RealFault
from lab.faults.real.ground import Ground, ground


def fault_on_ground(
    name: str,
    about: str,
    arrange: Callable[[Ground], Change | None],
    *,
    client: Language | None = "python",
    batched: bool | None = None,
    bundles: int = 4,
    **label: Any,
) -> RealFault:
    """A fault in a namespace of its own.

    Args:
        name: The fault's.
        about: As of `RealFault`.
        arrange: Makes the trouble and waits until brokers show it; may return what happens before each look.
        client: Of its messages; None: there are none.
        batched: As of `RealFault`.
        bundles: Of its namespace.
        **label: All else that a `RealFault` has.
    """

    @contextlib.contextmanager
    def making(lab: Lab) -> Iterator[Change | None]:
        with ground(lab, name, bundles, language=client or "python", batched=batched) as here:
            yield arrange(here)

    def made(lab: Lab) -> Making:
        return making(lab)

    return RealFault(name=name, about=about, made=made, client=client, batched=batched, **label)


def fault_of_namespace(
    name: str, about: str, arrange: Callable[[Ground], Change | None], *checks: str, **label: Any
) -> RealFault:
    """A fault of which everything is found of its own namespace.

    Args:
        name: The fault's.
        about: As of `RealFault`.
        arrange: As of `fault_on_ground`.
        *checks: Ids of the checks that find it; none: it is healthy.
        **label: All else that `fault_on_ground` takes.
    """
    expected = tuple(Expected(check, rf"public/{name}\b") for check in checks)
    return fault_on_ground(name, about, arrange, expected=expected, **label)
