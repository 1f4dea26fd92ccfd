"""Backlogs that keep growing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog import backlog_growing
from pulsar_steward.checks.backlog.backlog_growing import CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.load import parse_policy
from tests.builders import a_policy
from tests.checks.backlog.documents import retention, size
from tests.checks.backlog.histories import by_name, judged, scenes
from tests.checks.conftest import told

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pulsar_steward.checks.check import Check
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.policy.schema import Policy
    from tests.checks.backlog.conftest import Scene
    from tests.golden import Golden

GIB = 1024**3
MIB = 1024**2
WARNING, CRITICAL = Severity.WARNING, Severity.CRITICAL


# Backlogs in GiB, 15 minutes apart; the quota, where there is one, is 100 GiB.
HISTORIES: dict[str, tuple[list[int | None], Severity | None]] = {
    "bound/critical": ([67, 70, 73, 76], CRITICAL),  # 24 GiB left at 12 GiB/h: 2 h
    "bound/warning": ([66, 69, 72, 75], WARNING),
    "bound/slow": ([24, 25, 26, 27, 28], None),  # 72 GiB left at 4 GiB/h: 18 h
    "bound/within-12-h": ([49, 50, 51, 52], WARNING),  # 48 GiB left at 4 GiB/h: 12 h
    "bound/longer": ([48, 49, 50, 51], None),
    "bound/over-already": ([97, 99, 101, 103], None),
    "bound/rose-at-once": ([10, 10, 10, 60, 60, 60], None),
    "bound/rises-then-rests": ([10, 40, 70, 70, 70, 70], None),
    "bound/shrank-again": ([60, 65, 70, 10, 20, 30, 40], None),
    "bound/to-and-fro": ([10, 50, 10, 50, 10, 50], None),
    "bound/sinks": ([80, 70, 60, 50], None),
    "bound/consumed-in-batches": ([0, 20, 40, 60, 0, 20, 40, 60], None),
    "free/consumed-in-batches": ([0, 2, 4, 6, 0, 2, 4, 6], None),
    "bound/unloaded-for-a-while": ([60, 60, None, None, 60, 60, 60], None),
    "bound/empty-while-loading": ([60, 60, 60, 0, 60, 60, 60], None),
    "bound/grows-past-a-gap": ([60, None, 66, 69, 72, 75], WARNING),
    "bound/began-late": ([10, 10, 10, 10, 10, 25, 40, 55, 70], CRITICAL),
    "bound/new": ([10, 20, 30], None),
    "bound/hardly-shrank": ([60, 66, 65, 71, 77, 83], CRITICAL),
    "bound/__change_events": ([66, 69, 72, 75], None),
    "free/fast": ([0, 1, 2, 3], WARNING),  # 1.1 MiB/s
    "free/huge": ([10, 40, 70, 100], WARNING),
    "free/rests": ([300, 300, 300, 300], None),
}


def test_growth_is_judged_by_when_it_reaches_the_quota() -> None:
    """Steady growth is judged by the time until the quota; without a quota by its rate, and listed last."""
    backlogs = {name: [each and each * GIB for each in history] for name, (history, _) in HISTORIES.items()}
    backlogs["free/slow"] = [0, 943_000_000, 1_886_000_000, 2_829_000_000]  # just under 1 MiB/s
    found = by_name(judged(scenes(backlogs)))
    assert found == {name: severity for name, (_, severity) in HISTORIES.items() if severity}
    assert list(found)[:2] == ["bound/began-late", "bound/hardly-shrank"]
    assert list(found)[-2:] == ["free/huge", "free/fast"]


def found(made: Sequence[Scene]) -> Finding:
    (finding,) = judged(made).findings
    return finding


RETENTIONS: dict[str, tuple[dict[str, int] | None, str]] = {
    "larger": (
        retention(-1, 50 * 1024),
        "no size quota is in force; it outgrows the 50.0 GiB that are retained at 2026-11-21 09:15 UTC, in 15.0 min.",
    ),
    "smaller": (
        retention(60, 1024),
        "no size quota is in force, and it is over the 1.0 GiB that are retained already.",
    ),
    "the largest there is": (retention(60, 2**63 - 1), "PiB that are retained in 9,382,499,223,688.5 d."),
    "none": (None, "no size quota is in force, and no retained size to compare with."),
}


@pytest.mark.parametrize(("subscription", "first"), [("s", True), ("another", False)])
def test_a_dispatch_rate_of_the_slowest_is_its_first_cause(golden: Golden, subscription: str, first: bool) -> None:
    """Before its consumers, with who set it; one that holds another subscription back is no cause."""
    made = scenes({"bound/t": [66 * GIB, 69 * GIB, 72 * GIB, 75 * GIB]})
    made[-1].add("subscriptions", "acme/bound/t", backlog_entries=900, consumers=2)
    made[-1].add("clients", "acme/bound/t", consumer="c", address="10.0.0.7:5", unacked_messages=50)
    made[-1].add("drilled", "acme/bound/t", subscription=subscription, dispatching_limited=738)
    made[-1].rows["configuration"] += [
        {"broker": "a:8080", "key": "dispatchThrottlingRatePerSubscriptionInMsg", "value": "10"}
    ]
    evidence = found(made).evidence
    assert ("most likely cause: the dispatch rate" in evidence) is first
    golden(evidence)


@pytest.mark.parametrize(("retained", "words"), RETENTIONS.values(), ids=RETENTIONS)
def test_without_a_quota_the_retention_is_the_measure(retained: dict[str, int] | None, words: str) -> None:
    """Without a size quota the evidence compares a growing backlog with the retained size, if one is set."""
    made = scenes({"other/t": [10 * GIB, 20 * GIB, 30 * GIB, 40 * GIB]})
    for scene in made:
        scene.namespace("acme/other", **({"retention_policies": retained} if retained else {}))
    finding = found(made)
    assert finding.severity is WARNING
    assert finding.evidence.endswith(words)


@pytest.mark.parametrize(
    ("snapshots", "minutes", "policy", "words"),
    [
        (1, 15, {}, "at least 4 snapshots within 360 minutes"),
        (3, 15, {}, "; there are 3."),
        (6, 1, {}, "at least 10 minutes before it"),
        (4, 15, {"window_minutes": 30}, "within 30 minutes, this one included"),
        (4, 15, {}, None),
    ],
)
def test_too_few_snapshots_cannot_tell(snapshots: int, minutes: int, policy: dict[str, int], words: str | None) -> None:
    """The check cannot tell when the snapshots are too few or too close together."""
    made = scenes({"free/t": [GIB] * snapshots}, timedelta(minutes=minutes))
    judgement = judged(made, a_policy(backlog_growing=policy))
    assert judgement.cannot_tell is None if words is None else words in str(judgement.cannot_tell)


def unread(made: list[Scene]) -> None:
    """The snapshot to compare with lacks a broker."""
    made[0].rows["snapshot"][0]["unread_brokers"] = ["b:8080"]


def unset(made: list[Scene]) -> None:
    """Removes the default backlog quota from what was read for the last snapshot."""
    made[-1].configured(backlogQuotaDefaultLimitBytes=None, backlogQuotaDefaultLimitGB=None)


@pytest.mark.parametrize(("change", "words"), [(unread, "2026-11-21 08:15 UTC, with which"), (unset, "limit_bytes")])
def test_silence_is_open_where_something_was_not_read(change: Callable[[list[Scene]], Any], words: str) -> None:
    """The check cannot tell and names what is missing if a broker or the default quota was not read."""
    made = scenes({"free/t": [GIB] * 4})
    change(made)
    assert words in str(judged(made).cannot_tell)


def of_namespaces(**namespaces: dict[str, int]) -> Policy:
    """The default policy, with values of some namespaces' own."""
    own = {f"acme/{name}": {"backlog_growing": values} for name, values in namespaces.items()}
    return parse_policy({"namespaces": own}, name="p")


def test_what_it_says(golden: Golden) -> None:
    """Since when, how fast, until when; a whole snapshot goes before a partial one; namespaces have own values."""
    held = scenes({"bound/t": [66 * GIB, 66 * GIB, 69 * GIB, 72 * GIB, 75 * GIB]})
    held[-1].add("subscriptions", "acme/bound/t", backlog_entries=900, consumers=2)
    held[-1].add("clients", "acme/bound/t", consumer="c", address="10.0.0.7:5", unacked_messages=50)
    partial = scenes({"bound/t": [63 * GIB, 66 * GIB, 69 * GIB, 72 * GIB, 75 * GIB]})
    partial[1].rows["snapshot"][0]["unread_brokers"] = ["b:8080"]
    partial[1].rows["topics"] = []
    many = {f"bound/t{number:03}": [(50 + 2 * step) * GIB + number for step in range(4)] for number in range(102)}
    two = {"bound/t": [66 * GIB, 69 * GIB, 72 * GIB, 75 * GIB], "free/t": [1, 2, 3, 4]}
    own = of_namespaces(bound={"critical_hours_to_quota": 3}, free={"warning_bytes_per_second": 1})
    drained = [80 * GIB, 0, 20 * GIB, 40 * GIB, 60 * GIB]
    longer = scenes({"bound/t": drained, "longer/t": drained}, timedelta(minutes=110))
    for scene in longer:
        scene.namespace("acme/longer", size(100 * GIB))
    cases: dict[str, tuple[Any, ...]] = {
        "one burst makes no forecast": (
            scenes({"bound/t": [each * MIB for each in (1000, 1001, 40_000, 40_001, 40_002)]}),
        ),
        "with its worst consumer": (held,),
        "one snapshot was partial": (partial,),
        "more than a hundred, the soonest first": (scenes(many),),
        "by the usual values": (scenes(two),),
        "one is critical sooner": (scenes(two), own),
        "one is found at a lower rate": (
            scenes({"free/t": [0, 2000, 4000, 6000], "bound/t": [0, 2000, 4000, 6000]}),
            own,
        ),
        "one is looked at over a longer window, in which it is drained": (
            longer,
            of_namespaces(longer={"window_minutes": 480}),
        ),
        "only some may be judged": (
            scenes({"bound/t": [GIB] * 4, "free/t": [GIB] * 4}),
            of_namespaces(free={"minimum_snapshots": 5}),
        ),
    }
    golden(told({rule: judged(*case) for rule, case in cases.items()}))


def looking_up(most: int) -> Check:
    """The check, which looks up no more than so many topics."""
    return replace(CHECK, shards={**CHECK.shards, "possible": replace(CHECK.shards["possible"], most=most)})


def test_what_is_produced_into_is_looked_up_first() -> None:
    """Topics with much incoming data are looked up first, and the check cannot tell about those left out."""
    rest = {f"bound/rests{number}": [90 * GIB] * 4 for number in range(3)}
    made = scenes(rest | {"bound/grows": [30 * GIB, 35 * GIB, 40 * GIB, 45 * GIB]})
    for row in made[-1].rows["topics"]:
        row["throughput_in_bytes"] = 6.0 * MIB if row["topic"].endswith("grows") else 10.0
    assert by_name(judged(made, check=looking_up(1))) == {"bound/grows": WARNING}
    made = scenes(rest)
    assert "may have grown fast" in str(judged(made, check=looking_up(2)).cannot_tell)
    assert judged(made, check=looking_up(3)).cannot_tell is None


def test_more_suspects_than_are_looked_at_leave_it_open(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    """The check cannot tell when more backlogs grew fast lately than it looks up."""
    monkeypatch.setattr(backlog_growing, "MAX_SUSPECTS", 1)
    shrank = [60 * GIB, 20 * GIB, 30 * GIB, 40 * GIB, 50 * GIB]
    golden(str(judged(scenes({"bound/t": shrank, "bound/u": shrank})).cannot_tell))


SLOW = 800 * MIB
"""In a quarter of an hour: 0.9 MiB/s."""


def growing(count: int, name: str = "free/t-partition-{0}", steps: int = 4, by: int = SLOW) -> dict[str, list[int]]:
    """Backlogs of so many topics, each of which grows by as much from one snapshot to the next."""
    return {name.format(number): [step * by for step in range(steps)] for number in range(count)}


HEALTHY: dict[str, dict[str, list[int]]] = {
    "too few": growing(5),
    "under a size quota": growing(10, "bound/t-partition-{0}"),
    "of Pulsar's own": growing(10, "free/__t-partition-{0}"),
    "consumed in batches, every hour": {name: [2 * GIB * (step % 4) for step in range(12)] for name in growing(10)},
    "each consumed in batches at another time": {
        f"free/t-partition-{number}": [2 * GIB * ((step + number) % 4) for step in range(12)] for number in range(12)
    },
    "to and fro about a mebibyte": {name: [MIB - 9, MIB + 9] * 3 for name in growing(1000)},
    "grew in one step": {name: [0, 0, 0, 4 * SLOW] for name in growing(10)},
    "shrinks": {name: [4 * SLOW, 3 * SLOW, 2 * SLOW, SLOW] for name in growing(10)},
    "a single topic": {"free/t-partition-0": [0, SLOW, 2 * SLOW, 3 * SLOW]},
}


@pytest.mark.parametrize("backlogs", HEALTHY.values(), ids=HEALTHY)
def test_what_is_well_is_not_found(backlogs: dict[str, list[int]]) -> None:
    """Backlogs that are few, bounded by a quota, Pulsar's own or not growing steadily give no finding."""
    judgement = judged(scenes(backlogs))
    assert judgement.findings == ()
    assert judgement.cannot_tell is None


@pytest.mark.parametrize(("seconds", "found"), [(60, True), (61, False)])
def test_what_is_hardly_behind_is_to_and_fro(seconds: int, found: bool) -> None:
    """Growing backlogs are found only if they exceed `minimum_seconds_behind` at the topics' throughput."""
    made = scenes(growing(10))
    for row in made[-1].rows["topics"]:
        row["throughput_in_bytes"] = 3 * SLOW // 60
    assert bool(judged(made, a_policy(backlog_growing={"minimum_seconds_behind": seconds - 1})).findings) is found


def test_what_it_says_of_growing_together(golden: Golden) -> None:
    """What grows by itself is not told again, and alone causes no joint finding; a partial snapshot makes no sum."""
    own = a_policy(namespaces={"acme/free": {"backlog_growing": {"warning_bytes_per_second_together": 10 * MIB}}})
    fast = {"free/t-partition-0": [0, 10 * GIB, 20 * GIB, 30 * GIB]}
    partial = scenes(growing(10, steps=6))
    partial[3].rows["snapshot"][0]["unread_brokers"] = ["b:8080"]
    partial[3].rows["topics"] = partial[3].rows["topics"][::2]
    cases: dict[str, tuple[Any, ...]] = {
        "partitions of one topic": (scenes(growing(10)),),
        "topics, and single partitions, of one namespace": (
            scenes(growing(6, "free/t{0}") | growing(6, "free/{0}-partition-0")),
        ),
        "one grows fast, beside too few others": (scenes(fast | growing(3, "free/t-partition-1{0}")),),
        "one grows fast, beside enough others": (scenes(fast | growing(8, "free/t-partition-1{0}")),),
        "one snapshot was partial": (partial,),
        "below the namespace's own threshold": (scenes(growing(10)), own),
    }
    golden(told({rule: judged(*case) for rule, case in cases.items()}))
