"""A bookie that is killed for real: ledgers that nothing is left to copy to, and such as auto recovery copies anew."""

import time
from collections.abc import Callable
from typing import Any

import httpx

from lab.bookie import ADMIN_API, METRICS, url_of
from lab.faults.fault import Change, Expected
from lab.faults.real.ground import EVERY_S, Ground, fault_on_ground
from lab.waiting import wait_until

BOOKIES, KILLED = 3, 3
TOPICS = 4
LEDGERS_WITHIN_S, NONE_FOR_S = 180.0, 10.0
FOUND = "replication_auditor_NUM_UNDER_REPLICATED_LEDGERS_sum{"

BOOKIE_SETTINGS = {
    **ADMIN_API,
    **METRICS,
    "autoRecoveryDaemonEnabled": "true",
    "openLedgerRereplicationGracePeriod": "5000",
}
TWO_COPIES = tuple((f"managedLedgerDefault{what}", "2") for what in ("EnsembleSize", "WriteQuorum", "AckQuorum"))


def _persistence(copies: int) -> dict[str, object]:
    """Of a namespace whose new ledgers have so many copies."""
    numbers = dict.fromkeys(("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum"), copies)
    return {**numbers, "managedLedgerMaxMarkDeleteRate": 0.0}


def _killed_with(copies: int) -> Callable[[Ground], Change]:
    """Closed ledgers of so many copies on three bookies, of which one is killed after the first look."""

    def arrange(here: Ground) -> Change:
        here.admin.set_policy(here.namespace, "persistence", _persistence(copies))
        for number in range(TOPICS):
            topic = here.topic(f"t{number}")
            here.subscription(topic)
            here.send(topic, 100)
        # New ledgers have two copies again, for which two bookies are enough; the old ones are closed.
        here.admin.set_policy(here.namespace, "persistence", _persistence(2))
        here.admin.unload_namespace(here.namespace)
        wait_until(lambda: _auditors(here) == 1, "one of the bookies is the auditor", LEDGERS_WITHIN_S, EVERY_S)

        def change(observed: int) -> None:
            if observed != 1:
                return
            here.lab.kill_bookie(KILLED)
            wait_until(lambda: _found(here) >= TOPICS, "the auditor found ledgers", LEDGERS_WITHIN_S, EVERY_S)
            if copies < BOOKIES:
                _until_none_waits(here)

        return change

    return arrange


def _lines(here: Ground) -> list[list[str]]:
    """Lines of the metrics of each bookie that answers."""
    told = []
    for number in range(1, BOOKIES + 1):
        try:
            answer = httpx.get(f"{url_of(here.lab, number)}/metrics", trust_env=False)
        except httpx.TransportError:
            continue
        told.append(answer.text.splitlines())
    return told


def _auditors(here: Ground) -> int:
    return sum(any(line.startswith(FOUND) for line in lines) for lines in _lines(here))


def _found(here: Ground) -> float:
    """Ledgers that auditors found to have too few copies, since their start."""
    return sum(float(line.split()[-1]) for lines in _lines(here) for line in lines if line.startswith(FOUND))


def _until_none_waits(here: Ground) -> None:
    """Ledgers are counted as found before they are listed: so none is listed for a while."""
    empty_since = [time.monotonic()]

    def none_for_long() -> bool:
        if _waiting(here):
            empty_since[0] = time.monotonic()
        return time.monotonic() - empty_since[0] > NONE_FOR_S

    wait_until(none_for_long, "all have their copies again", LEDGERS_WITHIN_S, EVERY_S)


def _waiting(here: Ground) -> bool:
    """True if BookKeeper lists any ledger that waits for a copy."""
    answer = httpx.get(f"{url_of(here.lab)}/api/v1/autorecovery/list_under_replicated_ledger/", trust_env=False)
    return answer.status_code != httpx.codes.NOT_FOUND


OF_ITS_OWN: dict[str, Any] = {
    "bookies": BOOKIES,
    "bookie_settings": tuple(BOOKIE_SETTINGS.items()),
    "settings": TWO_COPIES,
    "own_lab": True,
    "observations": 2,
}

FAULTS = (
    fault_on_ground(
        "bookie-killed-without-another-to-copy-to",
        "Ledgers have a copy on each of three bookies, and one of these is killed: they wait for a third copy.",
        _killed_with(BOOKIES),
        expected=(Expected("ledgers-under-replicated", "", r"at least \d+ wait"),),
        **OF_ITS_OWN,
    ),
    fault_on_ground(
        "bookie-killed-and-all-copied-again",
        "Healthy again: a bookie of three was killed, and its ledgers have got their second copy on another one.",
        _killed_with(2),
        twin_of=("bookie-killed-without-another-to-copy-to",),
        **OF_ITS_OWN,
    ),
)
