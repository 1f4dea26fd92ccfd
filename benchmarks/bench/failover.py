"""Loss of a real broker with many topics, and its orderly end: how long both take, beside what ``failover-time`` says.

``python -m benchmarks.bench.failover 1000`` measures with so many topics, and prints it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from benchmarks.telling import sayer
from lab.cluster import running_lab
from lab.errors import AdminCallError
from lab.faults.real.ground import COMMON_SETTINGS, ground
from lab.faults.real.operator import shown_topics
from lab.waiting import wait_until
from pulsar_steward.checks.delayed.failover_time import FailoverTimePolicy, LostLoad, RemainingBrokers, estimated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.faults.real.ground import Ground

TOPICS = (1_000, 10_000)
PARTITIONS = 1_000
BUNDLES = 4
BROKERS = 3
HEAP_MB = 1536
"""One broker has all topics and consumers, and the two others get them at once."""

THERE_WITHIN_S = 900.0
EVERY_S = 0.5

KILLED, STOPPED = "killed", "ended orderly"
LOSSES = (STOPPED, KILLED, STOPPED)


class Failover(msgspec.Struct, frozen=True):
    """One broker that was lost, and what became of its topics.

    Attributes:
        how: `KILLED` or `STOPPED`.
        topics: Topics that were loaded on it, each with a consumer.
        listed_seconds: Seconds until the cluster did not list it any more.
        seconds: Seconds until every topic was loaded elsewhere, with its consumer.
        estimate: Seconds that the check estimates for its loss, with the default rates; of an orderly end without the
            session, for which nobody waits.
    """

    how: str
    topics: int
    listed_seconds: float
    seconds: float
    estimate: int

    @property
    def error_percent(self) -> float:
        """How much more the estimate is than what was measured; negative: less."""
        return 100 * (self.estimate / self.seconds - 1)


def failovers(topics: int, home: Path, say: Callable[[str], None]) -> list[Failover]:
    """Loses a broker with so many topics three times, killed and ended orderly."""
    say(f"a broker with {topics:,} topics is lost")
    with (
        running_lab(
            "failover", home=home, brokers=BROKERS, broker_heap_mb=HEAP_MB, broker_settings=dict(COMMON_SETTINGS)
        ) as lab,
        ground(lab, "many", BUNDLES) as here,
    ):
        for number in range(-(-topics // PARTITIONS)):
            here.admin.create_partitions(here.topic(f"t-{number}"), min(PARTITIONS, topics - number * PARTITIONS))
            here.shared(here.topic(f"t-{number}"), receiver_queue_size=1)
        say(f"  {topics:,} consumers are connected")
        return [_lost(here, how, topics, say) for how in LOSSES]


def _lost(here: Ground, how: str, topics: int, say: Callable[[str], None]) -> Failover:
    lab = here.lab
    broker = lab.brokers[0].broker_id
    _gather(here, broker, topics)
    served, bundles = _served(here), len(lab.owned_bundles()[broker])
    say(f"  {len(served):,} topics are on one broker")
    began = time.monotonic()
    (lab.kill_broker if how == KILLED else lab.stop_broker)(broker)
    wait_until(lambda: broker not in lab.active_brokers(), "the broker is not listed", THERE_WITHIN_S, EVERY_S)
    listed = time.monotonic() - began
    wait_until(lambda: served <= _served(here), "its topics are served again", THERE_WITHIN_S, EVERY_S)
    seconds = time.monotonic() - began
    say(f"  {how}: not listed after {listed:.0f} s, all topics are served after {seconds:.0f} s")
    lab.start_broker(broker)
    policy = FailoverTimePolicy()
    load = LostLoad(lost=broker, bundles=bundles, topics=len(served), delayed=0, most_delayed=0)
    session = policy.session_timeout_seconds if how == KILLED else 0
    estimate = estimated(load, RemainingBrokers(BROKERS - 1), session, policy).seconds
    return Failover(how, len(served), listed, seconds, estimate)


def _gather(here: Ground, broker: str, topics: int) -> None:
    """Has all bundles of the namespace on one broker, with every topic loaded there."""
    prefix = f"{here.namespace}/"
    mine = {bundle: f"{prefix}{bundle}" for bundle in here.admin.bundles(here.namespace)}

    def there() -> bool:
        owned = here.lab.owned_bundles().get(broker, ())
        for bundle, name in mine.items():
            if name not in owned:
                with suppress(AdminCallError):  # nobody owns it for a moment
                    here.admin.unload(here.namespace, bundle, broker)
        return set(mine.values()) <= set(owned) and len(_served(here)) >= topics

    wait_until(there, f"all of {here.namespace} is on {broker}", THERE_WITHIN_S, 5)


def _served(here: Ground) -> set[str]:
    """Topics of the namespace that are loaded, with a consumer."""
    prefix = f"persistent://{here.namespace}/"
    shown = shown_topics(here.lab)
    return {
        name
        for name, topic in shown.items()
        if name.startswith(prefix) and any(each["consumers"] for each in topic["subscriptions"].values())
    }


def table(measured: Sequence[Failover]) -> list[str]:
    """The table of docs/performance.md."""
    head = [
        "One of three brokers of Pulsar itself holds all topics, each with a consumer of one client, which comes back",
        "by itself; all share the cores. The estimate is that of the check `failover-time` with its default rates, of",
        "an orderly end without the session, for which nobody waits.",
        "",
        "| topics | broker | not listed after | all served after | estimate | error |",
        "|---|---|---|---|---|---|",
    ]
    return [
        *head,
        *(
            f"| {each.topics:,} | {each.how} | {each.listed_seconds:.0f} s | {each.seconds:.0f} s"
            f" | {each.estimate} s | {each.error_percent:+.0f} % |"
            for each in measured
        ),
    ]


def main() -> None:
    """Measures with as many topics as the first argument says."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="failover-") as home:
        measured = failovers(int(sys.argv[1]), Path(home), sayer(console))
    console.print("\n".join(table(measured)), markup=False, highlight=False)


if __name__ == "__main__":
    main()
