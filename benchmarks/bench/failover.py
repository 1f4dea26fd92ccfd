"""Loss of a real broker with many topics, and its orderly end: how long both take, beside what ``failover-time`` says.

It says so twice: with its default rates, and with those that it learned from the loss before, as the snapshots right
before and after that show it.

``python -m benchmarks.bench.failover 1000`` measures with so many topics, and prints it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from benchmarks.observing import observe
from benchmarks.telling import sayer
from lab.cluster import running_lab
from lab.errors import AdminCallError
from lab.faults.real.ground import COMMON_SETTINGS, ground
from lab.faults.real.operator import shown_topics
from lab.waiting import wait_until
from pulsar_steward.checks.delayed.failover import FailoverTimePolicy, LostLoad, RemainingBrokers, estimated
from pulsar_steward.checks.delayed.failover_time import CHECK
from pulsar_steward.checks.delayed.learned import learned_from
from pulsar_steward.checks.registry import VIEWS
from pulsar_steward.diagnose.asking import NoAnswer, SnapshotSources, about_of, ask
from pulsar_steward.diagnose.runner import askers_of
from pulsar_steward.model.learned import Learned
from pulsar_steward.model.tables import SMALL
from pulsar_steward.parallel import on_this_thread
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.files import LocalFiles
from pulsar_steward.snapshots.folder import SnapshotFolder

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
        learned: What the snapshots before and after it tell of it.
        with_learned: The estimate with what was learned from the loss before; None: nothing was.
    """

    how: str
    topics: int
    listed_seconds: float
    seconds: float
    estimate: int
    learned: Learned | None
    with_learned: int | None

    def error_percent(self, estimate: int) -> float:
        """How much more an estimate is than what was measured; negative: less."""
        return 100 * (estimate / self.seconds - 1)


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
        lost: list[Failover] = []
        for number, how in enumerate(LOSSES):
            known = lost[-1].learned if lost else None
            lost.append(_lost(here, how, topics, known, home / f"snapshots-{number}", say))
        return lost


def _lost(
    here: Ground, how: str, topics: int, known: Learned | None, out: Path, say: Callable[[str], None]
) -> Failover:
    lab = here.lab
    broker = lab.brokers[0].broker_id
    _gather(here, broker, topics)
    served, bundles = _served(here), len(lab.owned_bundles()[broker])
    say(f"  {len(served):,} topics are on one broker")
    before = _observed(here, out)
    began = time.monotonic()
    (lab.kill_broker if how == KILLED else lab.stop_broker)(broker)
    wait_until(lambda: broker not in lab.active_brokers(), "the broker is not listed", THERE_WITHIN_S, EVERY_S)
    listed = time.monotonic() - began
    wait_until(lambda: served <= _served(here), "its topics are served again", THERE_WITHIN_S, EVERY_S)
    seconds = time.monotonic() - began
    say(f"  {how}: not listed after {listed:.0f} s, all topics are served after {seconds:.0f} s")
    learned = _learned(before, _observed(here, out))
    say(f"  {learned.words if learned else 'nothing is learned from it'}")
    lab.start_broker(broker)
    policy = FailoverTimePolicy()
    load = LostLoad(lost=broker, bundles=bundles, topics=len(served), delayed=0, most_delayed=0)
    session = policy.session_timeout_seconds if how == KILLED else 0
    takers = RemainingBrokers(BROKERS - 1)
    estimate = estimated(load, takers, session, policy).seconds
    with_learned = estimated(load, takers, session, policy, known).seconds if known else None
    return Failover(how, len(served), listed, seconds, estimate, learned, with_learned)


def _observed(here: Ground, out: Path) -> SnapshotSources:
    """A snapshot of now, as the check sees it."""
    now = datetime.now(UTC)
    uri = observe(here.lab, Policy(), cluster="failover", out=out, taken_at=now, checks={CHECK.check_id})
    folder = SnapshotFolder(LocalFiles(), uri)
    return SnapshotSources({table.name: folder.source(table) for table in SMALL}, folder.shards())


def _learned(before: SnapshotSources, after: SnapshotSources) -> Learned | None:
    """The rate that the check learns from two snapshots; None: it learns none."""
    both = SnapshotSources(after.small, after.shards, [before])
    (asker,) = askers_of([CHECK], about_of(both), Policy())
    answers = ask(both, [asker], VIEWS, on_this_thread)[CHECK.check_id]
    if isinstance(answers, NoAnswer):
        raise answers
    return learned_from(answers, FailoverTimePolicy(), asker.context.about.taken_at)


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
        "an orderly end without the session, for which nobody waits. What is learned is what the snapshots right",
        "before and after a loss tell of it, by when clients were connected again; the last two columns are the",
        "estimate with what was learned from the loss in the row above.",
        "",
        "| topics | broker | not listed after | all served after | estimate | error | learned | estimate | error |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return [
        *head,
        *(
            f"| {each.topics:,} | {each.how} | {each.listed_seconds:.0f} s | {each.seconds:.0f} s"
            f" | {_with_error(each, each.estimate)} | {_rate(each.learned)} | {_with_error(each, each.with_learned)} |"
            for each in measured
        ),
    ]


def _with_error(each: Failover, estimate: int | None) -> str:
    return "none | none" if estimate is None else f"{estimate} s | {each.error_percent(estimate):+.0f} %"


def _rate(learned: Learned | None) -> str:
    return f"{learned.topics:,} in {learned.seconds:,} s, {learned.per_second:,.0f} a second" if learned else "nothing"


def main() -> None:
    """Measures with as many topics as the first argument says."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="failover-") as home:
        measured = failovers(int(sys.argv[1]), Path(home), sayer(console))
    console.print("\n".join(table(measured)), markup=False, highlight=False)


if __name__ == "__main__":
    main()
