"""Transactions that an application opens and never ends, or that time out; and such as come and go."""

from collections.abc import Callable
from typing import Any

from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ground import Ground, fault_on_ground
from lab.faults.real.growth import apart
from lab.faults.real.operator import metrics_of
from lab.waiting import wait_until

LOOKS = 4
COORDINATORS = 16
TOLD_WITHIN_S = 60.0
A_MINUTE: dict[str, object] = {"transactions_open": {"warning_minutes": 1}}
SOONER = "The half hour that they have to stay open is lowered to a minute, as a benchmark cannot wait for it."

OPEN, OPENED = "pulsar_txn_active_count", "pulsar_txn_created_total"
CHECK = "transactions-open"
AS_IT_HAPPENS: dict[str, str] = {
    "tc-skew": "coordinators are where the brokers happened to place them as the client asked for all of them at once"
}
"""Seen with 7, 5 and 4 of them on a busy machine."""


def _sum(here: Ground, series: str) -> float:
    return sum(value for name, value in metrics_of(here.lab) if name.startswith(f"{series}{{"))


def _used(*, left_open: int = 0, rate: int = 0) -> Callable[[Ground], Change]:
    """Transactions that are left open before the first look, and others that come and go all the while."""

    def arrange(here: Ground) -> Change:
        here.transact(here.topic(), left_open=left_open, rate=rate)
        enough = left_open + COORDINATORS * (rate > 0)
        wait_until(lambda: _sum(here, OPENED) >= enough, "coordinators have opened transactions", TOLD_WITHIN_S)
        return apart()

    return arrange


def _left_in_between(count: int, timeout_s: float) -> Callable[[Ground], Change]:
    """Transactions that are left open after the first look, of an application that asks for so short a time-out."""

    def arrange(here: Ground) -> Change:
        wait = apart()
        here.transact(here.topic(), count=COORDINATORS)

        def change(observed: int) -> None:
            if observed == 1:
                here.transact(here.topic("later"), left_open=count, timeout_s=timeout_s)
                wait_until(lambda: not _sum(here, OPEN), "all of them have timed out", TOLD_WITHIN_S)
            wait(observed)

        return change

    return arrange


def _fault(name: str, about: str, arrange: Callable[[Ground], Change], *found: str, **label: Any) -> RealFault:
    """A fault of all coordinators, which count what was done before."""
    expected = tuple(Expected(CHECK, evidence=evidence) for evidence in found)
    return fault_on_ground(
        name,
        about,
        arrange,
        expected=expected,
        allowed=AS_IT_HAPPENS,
        client="java",
        own_lab=True,
        alone=True,
        observations=LOOKS,
        **label,
    )


FAULTS = (
    _fault(
        "transactions-stay-open",
        f"An application opened 32 transactions and ends none of them. {SOONER}",
        _used(left_open=2 * COORDINATORS),
        r"At least 32 transactions of 16 coordinators have been open",
        policy=A_MINUTE,
    ),
    _fault(
        "transactions-stay-open-among-others",
        f"Ten transactions of each coordinator are never ended, while one a second comes and goes. {SOONER}",
        _used(left_open=10 * COORDINATORS, rate=1),
        r"At least \d+ transactions of 16 coordinators have been open",
        policy=A_MINUTE,
    ),
    _fault(
        "transactions-are-committed",
        f"Healthy: twenty transactions a second, each committed at once. {SOONER}",
        _used(rate=20),
        policy=A_MINUTE,
        twin_of=("transactions-stay-open", "transactions-stay-open-among-others", "transactions-are-timed-out"),
    ),
    _fault(
        "transactions-are-timed-out",
        "An application left 120 transactions open, each for longer than the time-out that it had asked for.",
        _left_in_between(120, 5.0),
        r"120 transactions timed out",
    ),
)
