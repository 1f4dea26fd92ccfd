"""``python -m benchmarks.versions``: tries each Pulsar version on real brokers, and writes `docs/versions.md`.

On each a check-up looks, every change is planned, approved, carried out, proved and undone by the code that Airflow's
tasks run, and the contract suite runs. Columns of other versions stay as they are in the document. What comes of it is
what `pulsar_steward.model.pulsar_versions` has to say: until it does, a test fails.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from datetime import UTC, datetime, timedelta
from itertools import chain, cycle
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from benchmarks.accuracy.running import Workbench
from benchmarks.accuracy.table import strays_of, wrongs
from benchmarks.chaos.ground import NAMESPACES, TOPICS, Ground
from benchmarks.chaos.plans import BATCH, plan_of
from benchmarks.chaos.running import RUN
from benchmarks.observing import settings_of
from benchmarks.processes import ROOT
from benchmarks.telling import sayer
from lab.cluster import running_lab
from lab.errors import AdminCallError, LabError
from lab.faults.real.operator import operator_of
from lab.faults.registry import ON_EVERY_VERSION
from lab.model import CLUSTER, VERSIONS
from pulsar_steward.apply.applied import what_was_done
from pulsar_steward.apply.context import LedgerContext
from pulsar_steward.apply.execute import carry_out
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.apply.journal import Journal
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.verify import verify
from pulsar_steward.changes import kind_of
from pulsar_steward.errors import StewardError
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Origin
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.bundles import BY_TOPIC_COUNT, BundleRange
from pulsar_steward.model.finding import Outlook
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    Persistence,
    QuotaPolicy,
    Retention,
    SettingName,
    TimeToLive,
)
from pulsar_steward.model.step import AddPartitions, ChangeSetting, SetIsolation, SplitBundle
from pulsar_steward.model.units import DAY, GIB
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import APPROVE, COMMENT, LOSS, QUESTION, STEPS
from pulsar_steward.policy.schema import Policy, WantedGroup
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.report.checkup.document import Checkup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Engine

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import Change

DOCUMENT = ROOT / "docs" / "versions.md"
SEED = 7
HEALTHY, FINDINGS = 0, 1
DONE = "done"
TRIED_ON, STARTS, CHECKUP, CONTRACT = "tried on", "starts", "check-up", "contract suite"
FOUND = "faults of quotas, retention, subscriptions and moves"
ROWS = (TRIED_ON, STARTS, CHECKUP, *Operation, CONTRACT, FOUND)
BROKE_OFF = "broke off"
IDLE = "idle"
"""Subscription that nobody uses, of every topic of `SET`."""
SOON = {"statsUpdateFrequencyInSecs": "2", "statsUpdateInitialDelayInSecs": "1"}
"""So that brokers' statistics hold what there is."""

OTHERS = ("move", "coordinators", "split", "raise", "deletion")
"""Kinds of change that `Ground` makes up by what it sees; those of bundles are each in a namespace of its own."""
PARTITIONS = 2
SEEN_SECONDS = 8
"""Until brokers' statistics hold a topic that was just loaded, by `SOON`, and `topic_as_planned` lets it pass."""
SET = NAMESPACES[-1]
"""The namespace whose settings are changed."""
GROUP = WantedGroup(name="tried", namespaces=(SET,), primary=(r"127\.0\.0\.1",))
"""A namespace on the first of three brokers, each on a host of its own."""
VALUES: dict[SettingName, Setting] = {
    SettingName.RETENTION: Retention(minutes=20_000, megabytes=-1),
    SettingName.SIZE_QUOTA: BacklogQuota(limit_bytes=10 * GIB, policy=QuotaPolicy.HOLD),
    SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=DAY, policy=QuotaPolicy.HOLD),
    SettingName.TTL: TimeToLive(seconds=2 * DAY),
    SettingName.DELAYED_DELIVERY: DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=DAY * 1000),
    SettingName.PERSISTENCE: Persistence.of((1, 1, 1), 0.2),
}
"""In an order in which brokers take them: a quota has to be below the retention."""

BEFORE = """# Pulsar versions

What was tried on real brokers of each version, with `ModularLoadManagerImpl`. Written by `python -m
benchmarks.versions`, which starts three brokers, a bookie and ZooKeeper of the version from Maven Central, has a
check-up look, and plans, approves, carries out, proves and undoes one change of each kind by the code that Airflow's
tasks run. Then it runs the [contract suite](contract.md), as `make test-all` does, and makes the labelled faults of
quotas, retention, subscriptions and moves ([accuracy](accuracy.md)): each is right if all of it is found, and nothing
else.

- `done`: the brokers showed the change, and then showed it undone (a split, a deletion and a raise of the number of
  coordinators or partitions cannot be undone).
- `refused`: the guard [`version_tried`](guards.md) refuses such a step on this version, before it is proposed and
  once more right before the call; the reason is below.
- A release that is not listed counts as the one of its line: 4.0.8 as 4.0.7.
- All other versions were never tried, newer ones and builds that are no release of Apache Pulsar among them. Looking
  at them is safe. Every change is refused until the policy says that you tried it: `guards.versions_tried_here:
  ["4.3"]` for a line, `["4.0.7-acme"]` for a build. That adds to the table and takes nothing away: what brokers are
  known to lack stays refused.
- While brokers of several versions run, the one that can do least counts. A version that is not known is refused.

"""
WIDTH = 120
WHY = "\n## Why not, and what is to be known\n\n"


class Tried(msgspec.Struct, frozen=True):
    """One version: the cells of its column by row, and the reasons behind them."""

    version: str
    cells: dict[str, str]
    notes: list[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Tries, prints and writes; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("--versions", nargs="+", default=VERSIONS, choices=VERSIONS)
    parser.add_argument("--only", choices=PARTS, help="all of it by default")
    parser.add_argument("--out", type=Path, default=DOCUMENT, metavar="FILE")
    arguments = parser.parse_args(argv)
    parts = [PARTS[arguments.only]] if arguments.only else list(PARTS.values())
    console = Console(width=160)
    say = sayer(console)
    for version in arguments.versions:
        columns = {each.version: each for each in written(arguments.out)}
        column = columns.setdefault(version, Tried(version, {}, []))
        for row, result, reason in chain.from_iterable(part(version) for part in parts):
            say(f"{version}: {row}: {result} {reason}")
            column.cells[row] = result
            column.notes[:] = [note for note in column.notes if not note.startswith(f"{row}: ")]
            column.notes.extend([f"{row}: {reason}"] if reason else [])
        arguments.out.write_text(markdown(columns.values()), encoding="utf-8")
        say(f"written: {arguments.out}")
    return 0


def operations(version: str) -> Iterator[tuple[str, str, str]]:
    """All but the contract, on one cluster: rows, what came of each, and why where it has to be said."""
    yield TRIED_ON, datetime.now(UTC).date().isoformat(), ""
    started = False
    with tempfile.TemporaryDirectory(prefix="versions-") as home:
        try:
            with running_lab(
                "versions", home=Path(home), pulsar_version=version, broker_settings=SOON, hosts="distinct"
            ) as lab:
                started = True
                yield STARTS, "yes", ""
                ground = Ground(lab)
                for number in range(TOPICS):  # of topics without a subscription brokers tell little
                    operator_of(lab).create_subscription(f"persistent://{SET}/t-{number}", IDLE)
                ground.settle()
                yield from _operations(ground, Path(home))
                yield CHECKUP, *_checkup(lab.admin_urls)
        except (LabError, TimeoutError) as error:
            yield BROKE_OFF if started else STARTS, "yes" if started else "no", _one_line(error)


def _checkup(urls: Sequence[str]) -> tuple[str, str]:
    """Number of checks that could judge, and the names of those that could not."""
    command = [sys.executable, "-m", "pulsar_steward.cli", "checkup", "--json", "-"]
    command += [word for url in urls for word in ("--admin-url", url)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in {HEALTHY, FINDINGS}:
        return "no", _one_line(done.stderr)
    checkup = msgspec.json.decode(done.stdout, type=Checkup)
    blind = [check.check_id for check in checkup.checks if check.outlook is Outlook.UNKNOWN]
    unread = [f"{each.name} was not read: {each.reason}" for each in checkup.about.unread]
    judged = f"{len(checkup.checks) - len(blind)} of {len(checkup.checks)} checks"
    return judged, _one_line(
        "; ".join([*unread, *(["on an idle lab these cannot judge: " + ", ".join(blind)] if blind else [])])
    )


def contract(version: str) -> Iterator[tuple[str, str, str]]:
    """Tests of the contract suite on a cluster of that version: how many hold, and which fail."""
    command = [sys.executable, "-m", "pytest", "tests/contract", "-q", "-n0", "-p", "no:cacheprovider"]
    command += ["-k", f"real and {version}", "--no-header", "-rfE", "--tb=no"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    lines = done.stdout.splitlines() or [done.stderr]
    failed = [line.partition("::")[2] for line in lines if line.startswith(("FAILED", "ERROR"))]
    counts = {what: int(number) for number, what in re.findall(r"(\d+) ([a-z]+)", lines[-1])}
    holds, differs = counts.get("passed", 0) + counts.get("xpassed", 0), counts.get("xfailed", 0)
    told = f"{holds} hold" + (f", [{differs} differ](contract.md#other-versions)" if differs else "")
    yield CONTRACT, f"{told}, {len(failed)} fail" if failed or not holds else told, _one_line("; ".join(failed))


def faults(version: str) -> Iterator[tuple[str, str, str]]:
    """Labelled faults on brokers of that version: how many are found, and what is missed, false or cannot be made."""
    console = Console(width=160)
    with tempfile.TemporaryDirectory(prefix="versions-") as home:
        scenes = list(Workbench(Path(home), sayer(console), version).outcomes(ON_EVERY_VERSION))
    outcomes = [outcome for scene in scenes for outcome in scene.outcomes]
    made = [outcome for outcome in outcomes if outcome.failure is None]
    right = sum(outcome.right for outcome in made)
    told = [f"{each.fault.name}: {words}" for each in made if not each.right for words in wrongs(each)]
    told += [stray for scene in scenes for stray in strays_of(scene)]
    unmade = sorted(outcome.fault.name for outcome in outcomes if outcome.failure is not None)
    told += [f"cannot be made there: {', '.join(unmade)}"] if unmade else []
    yield FOUND, f"{right} of {len(made)} right", _one_line("; ".join(told))


PARTS: dict[str, Callable[[str], Iterator[tuple[str, str, str]]]] = {
    "operations": operations,
    "contract": contract,
    "faults": faults,
}


def _operations(ground: Ground, home: Path) -> Iterator[tuple[str, str, str]]:
    """Each operation, and what came of it and of the way back."""
    engine = open_ledger(f"sqlite:///{home / 'ledger.db'}")
    try:
        for number, change in enumerate(_changes(ground)):
            operation = kind_of(change).operation
            result, reason = _applied(ground, engine, change, f"{CLUSTER}-{number}")
            if result == DONE and (back := _inverse(ground, engine, f"{CLUSTER}-{number}")):
                result, reason = _applied(ground, engine, back, f"{CLUSTER}-{number}-back", groups=())
                reason = reason and f"the way back: {reason}"
            yield str(operation), result, reason
    finally:
        engine.dispose()


def _changes(ground: Ground) -> Iterator[Change]:
    """One change of each kind."""
    random = Random(SEED)
    for kind, namespace in zip(OTHERS, cycle(NAMESPACES)):
        try:
            change = ground.change(kind, namespace, random, ground.state())
        except AdminCallError:  # brokers before 2.11 do not tell positions, by which `Ground` splits
            change = _split_in_the_middle(ground, namespace)
        if change:
            yield change
    yield _more_partitions(ground)
    yield SetIsolation(pulsar_cluster=CLUSTER, policy=GROUP.name, before=None, after=GROUP.isolation)
    for topic in (None, f"persistent://{SET}/t-1"):
        for name, value in VALUES.items():
            change = ChangeSetting(namespace=SET, topic=topic, name=name, before=None, after=value)
            with _look(ground) as look:  # fewer copies than by default are refused, and so are unknown ones
                yield msgspec.structs.replace(change, inherited=look.inherited(change))


def _more_partitions(ground: Ground) -> AddPartitions:
    """A raise of the partitions of a topic that is made for it, and whose partitions are loaded."""
    topic, admin = f"persistent://{SET}/parts", operator_of(ground.lab)
    admin.create_partitioned_topic(topic, PARTITIONS)
    for index in range(PARTITIONS):
        admin.load_topic(f"{topic}-partition-{index}")
    time.sleep(SEEN_SECONDS)
    return AddPartitions(namespace=SET, topic=topic, before=PARTITIONS, after=2 * PARTITIONS)


def _split_in_the_middle(ground: Ground, namespace: str) -> Change:
    """A split of which it does not matter what would come of it."""
    state = ground.state()
    bundle = state.bundles(namespace)[0]
    whole = BundleRange.parse(bundle)
    middle = (whole.lower + whole.upper) // 2
    low, high = BundleRange(whole.lower, middle), BundleRange(middle, whole.upper)
    owner = state.owners[f"{namespace}/{bundle}"]
    halves = (str(low), str(high))
    return SplitBundle(namespace=namespace, bundle=bundle, owner=owner, algorithm=BY_TOPIC_COUNT, halves=halves)


def _inverse(ground: Ground, engine: Engine, name: str) -> Change | None:
    """The change that takes back what was done under this name, as a rollback makes it; None: nothing can."""
    ledger = LedgerReader(engine)
    (row,) = ledger.carried_out(name)
    (done,) = what_was_done(ledger, row.plan_id, row.batch_id).done
    kind = kind_of(done.change)
    if not kind.undoable:
        return None
    with _look(ground) as look:
        return kind.inverse(kind.recorded(done.former), look).change


def _look(ground: Ground) -> LiveReader:
    return LiveReader(settings_of(ground.lab, _policy(ground.lab.state.spec.pulsar_version)))


def _applied(
    ground: Ground, engine: Engine, change: Change, name: str, groups: tuple[WantedGroup, ...] = (GROUP,)
) -> tuple[str, str]:
    """A plan of one step, approved, carried out and read back, under a policy that wants these groups."""
    now, writer, ledger = datetime.now(UTC), LedgerWriter(engine), LedgerReader(engine)
    policy = _policy(ground.lab.state.spec.pulsar_version, groups)
    plan = plan_of(name, [change], now, ground.identity(), policy, ground.reach)
    writer.record_plan(plan, now, policy=policy)
    writer.record_request(plan, BATCH, RUN, now, origin=Origin.SCHEDULE, policy=policy, asked_digest=plan.digest)
    writer.record_answer(interpret(_yes(plan, now), _question(plan), policy.approval, now))
    context = LedgerContext(
        cluster=plan.cluster,
        run=RUN,
        ledger=ledger,
        ledger_writer=writer,
        journal=Journal(writer, plan.cluster),
        policy=policy,
        clock=lambda: datetime.now(UTC),
    )
    settings = AdminSettings(urls=ground.lab.admin_urls, limits=policy.admin)
    try:
        with context.applying(settings, StopSwitch(ledger, plan.cluster)) as applying:
            (outcome,) = carry_out(applying, plan.plan_id, BATCH)
            proof = verify(applying, plan.plan_id, BATCH)
    except StewardError as error:
        return type(error).__name__.lower(), _one_line(error)
    if outcome.outcome.value == DONE and proof.proved:
        return DONE, ""
    if outcome.outcome.value == DONE:
        return "not proved", _one_line(proof.reason)
    return outcome.outcome.value, _one_line(outcome.reason)


def _policy(version: str, groups: tuple[WantedGroup, ...] = ()) -> Policy:
    """One without rests, which vouches for a version that was never tried: it is tried here."""
    guards = {
        "circle_minutes": 0,
        "least_brokers": 1,
        "most_coordinators": 10_000,
        "most_partitions": 100,
        "versions_tried_here": [version.rpartition(".")[0]],
    }
    # Brokers on one machine each report all of its CPU.
    room = {"warning_cpu_percent_after_loss": 1000, "critical_cpu_percent_after_loss": 1000}
    sections = {
        "guards": guards,
        "subscriptions": {"delete_abandoned": True},
        "tc_skew": {"cooldown_minutes": 0},
        "brokers": {"groups": [group.model_dump() for group in groups]},
        "cluster_placement": room,
        "broker_drain_remedy": {"most_usage_percent": 1000},
    }
    return Policy.model_validate(sections)


def _question(plan: Plan) -> ApprovalQuestion:
    return ApprovalQuestion(plan=plan, batch_id=BATCH, run=RUN, origin=Origin.SCHEDULE, asked_digest=plan.digest)


def _yes(plan: Plan, now: datetime) -> dict[str, object]:
    return {
        "chosen_options": [APPROVE],
        "params_input": {
            QUESTION: plan.digest,
            STEPS: [step.step_id for step in plan.batch(BATCH).steps],
            COMMENT: "",
            LOSS: True,
        },
        "responded_at": now - timedelta(seconds=1),
        "responded_by_user": {"id": "1", "name": "operator"},
        "timedout": False,
    }


def markdown(columns: Iterable[Tried]) -> str:
    """The document, with the versions in order."""
    ordered = sorted(columns, key=lambda each: tuple(map(int, each.version.split("."))))
    rows = [*ROWS, *sorted({row for each in ordered for row in each.cells} - set(ROWS))]
    cells = [["", *(each.version for each in ordered)], ["---"] * (1 + len(ordered))]
    cells += [[row, *(each.cells.get(row, "") for each in ordered)] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    notes = [
        textwrap.fill(f"- {each.version}: {note}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        for each in ordered
        for note in each.notes
    ]
    return BEFORE + "\n".join(lines) + "\n" + (WHY + "\n".join(notes) + "\n" if notes else "")


def written(file: Path) -> list[Tried]:
    """The columns of a document that was written before; none where there is no such file."""
    if not file.exists():
        return []
    document = file.read_text(encoding="utf-8")
    table = [[cell.strip() for cell in line[1:-1].split("|")] for line in document.splitlines() if line.startswith("|")]
    versions, rows = table[0][1:], table[2:]
    whole = document.partition(WHY)[2].replace("\n  ", " ")  # lines that belong to the one before are indented
    notes = [line[2:].partition(": ") for line in whole.splitlines()]
    return [
        Tried(
            version,
            {row[0]: row[place] for row in rows if row[place]},
            [note for of, _, note in notes if of == version],
        )
        for place, version in enumerate(versions, start=1)
    ]


def _one_line(error: object) -> str:
    return " ".join(str(error).split()).replace("|", "/")[:600]


if __name__ == "__main__":
    sys.exit(main())
