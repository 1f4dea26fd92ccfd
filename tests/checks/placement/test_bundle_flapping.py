"""Bundles that change their owner again and again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import bundle_flapping
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.policy.schema import Policy
    from tests.golden import Golden

STEP = timedelta(minutes=15)
LONG_AGO = NOW.timestamp() - 86_400
Rows = dict[str, list[dict[str, Any]]]


def a_snapshot(bundles: Mapping[str, str | None], steps_ago: int = 0, **started: float | None) -> Rows:
    """Brokers a to d, and who owns which bundle; `started` says when a broker did, None: it is away."""
    taken_at = NOW - steps_ago * STEP
    brokers = {name: started.get(name, LONG_AGO) for name in "abcd"}
    return {
        "snapshot": [{"cluster": "east", "taken_at": taken_at, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": f"{name}:1", "read": True} for name, at in brokers.items() if at is not None],
        "metrics": [
            {"source": f"{name}:1", "source_kind": "broker", "series": STARTED, "value": at}
            for name, at in brokers.items()
            if at is not None
        ],
        "bundles": [
            {
                "namespace": name.rpartition("/")[0] or "acme/orders",
                "bundle": name.rpartition("/")[2],
                "owner": owner and f"{owner}:1",
                "owner_known": True,
            }
            for name, owner in bundles.items()
        ],
    }


def over_time(snapshots: Sequence[Rows], policy: Policy | None = None) -> Judgement:
    """Judgement of the last snapshot, which knows those before it."""
    *earlier, now = snapshots
    return judge_rows(bundle_flapping.CHECK, now, policy, earlier[::-1])


def owned(owners: str, name: str = "0x0_0x1") -> list[Rows]:
    """Snapshots of one bundle: a letter is its owner, a dash nobody; another bundle stays where it is."""
    last = len(owners) - 1
    return [
        a_snapshot({name: None if owner == "-" else owner, "rests": "d"}, last - number)
        for number, owner in enumerate(owners)
    ]


MOVES: dict[str, Severity | None] = {
    "aaaa": None,
    "aaab": None,
    "aaba": None,
    "abcaaa": None,
    "abcdd": None,
    "a-a-b-b-a-a": None,
    "abab": Severity.WARNING,
    "a-b-a-b-": Severity.WARNING,
    "abcda": Severity.WARNING,
    "ababa": Severity.WARNING,
    "ababab": Severity.CRITICAL,
}


def test_moves_are_counted_and_those_straight_back_twice() -> None:
    """Each move of a bundle counts, a direct return counts twice, and a time without an owner counts for nothing."""
    longest = max(map(len, MOVES))
    snapshots = [
        a_snapshot({name: None if (owner := name.rjust(longest, "-")[number]) == "-" else owner for name in MOVES}, ago)
        for number, ago in zip(range(longest), reversed(range(longest)), strict=True)
    ]
    found = {finding.subject.rpartition("/")[2]: finding.severity for finding in over_time(snapshots).findings}
    assert found == {name: severity for name, severity in MOVES.items() if severity}
    assert next(iter(found)) == "ababab"


AWAY: dict[str, Callable[[datetime], float | None]] = {
    "restarted": lambda taken_at: taken_at.timestamp() - 60,
    "not listed": lambda _: None,
}


@pytest.mark.parametrize("source_was", AWAY.values(), ids=AWAY)
def test_a_broker_that_was_away_explains_its_moves(source_was: Callable[[datetime], float | None]) -> None:
    """Moves of bundles away from a broker that restarted or was not listed are not found."""
    owners = "abab"
    snapshots = [a_snapshot({"x": owners[0], "a's": "a", "b's": "b"}, 3)]
    for step in range(1, 4):
        was = source_was(NOW - (3 - step) * STEP)
        snapshots.append(a_snapshot({"x": owners[step], "a's": "a", "b's": "b"}, 3 - step, **{owners[step - 1]: was}))
    judgement = over_time(snapshots)
    assert (judgement.findings, judgement.cannot_tell) == ((), None)


@pytest.mark.parametrize(("others", "found"), [({}, 0), ({"a's": "a", "b's": "b"}, 1)])
def test_a_broker_that_kept_nothing_was_away_where_its_start_is_not_known(
    others: dict[str, str | None], found: int
) -> None:
    """A broker of unknown start counts as away if it kept no bundle, and as present if it kept one."""
    snapshots = [a_snapshot({"x": owner, **others}, 3 - step) | {"metrics": []} for step, owner in enumerate("abab")]
    assert len(over_time(snapshots).findings) == found


def test_one_restart_does_not_hide_the_other_moves() -> None:
    """A move that a restart explains is counted apart, and the other moves of the bundle are found."""
    snapshots = owned("ababab")
    at = snapshots[1]["snapshot"][0]["taken_at"].timestamp() - 60
    snapshots[1]["metrics"][0]["value"] = at
    (finding,) = over_time(snapshots).findings
    assert finding.figures == {"moves": 4, "moves_back": 3, "moves_from_brokers_away": 1, "owners": 2}
    assert finding.severity is Severity.WARNING


def starting(count: int, snapshots: int = 8) -> list[Rows]:
    """Snapshots in which broker a's bundle goes to b and comes back, and a has started anew in so many of them."""
    found: list[Rows] = []
    for number in range(snapshots):
        ago = snapshots - 1 - number
        began = (NOW - ago * STEP).timestamp() - 60 if number < count else None
        last = max(
            (row["value"] for rows in found for row in rows["metrics"] if row["source"] == "a:1"), default=LONG_AGO
        )
        here = "b" if number % 2 and number < count else "a"
        found.append(a_snapshot({"x": here, "a's": "a", "b's": "b"}, ago, a=began or last))
    return found


@pytest.mark.parametrize(
    ("starts", "severity"),
    [(3, None), (4, Severity.WARNING), (6, Severity.WARNING), (7, Severity.CRITICAL)],
    ids=["a rolling restart, and another", "three", "five", "six"],
)
def test_a_broker_that_starts_again_and_again_is_named(starts: int, severity: Severity | None) -> None:
    """A broker that restarts repeatedly is found instead of its bundles, and its first start does not count."""
    findings = over_time(starting(starts)).findings
    assert [(finding.subject, finding.severity) for finding in findings] == ([("a:1", severity)] if severity else [])
    assert [finding.figures["restarts"] for finding in findings] == ([starts - 1] if severity else [])


def test_brokers_whose_starts_are_not_known_are_not_said_to_restart() -> None:
    """A start time that is missing from every other snapshot is not counted as repeated restarts of the broker."""
    snapshots = starting(1)
    for rows in snapshots[::2]:
        rows["metrics"] = []
    assert over_time(snapshots).findings == ()


def test_a_broker_that_restarts_comes_before_what_moves(golden: Golden) -> None:
    """A restarting broker is listed before the bundles that move, with the number of moves away from it."""
    snapshots = starting(4)
    for number, rows in enumerate(snapshots):
        rows["bundles"] += a_snapshot({"y": "cdcdaaaa"[number]})["bundles"]
    broker, bundle = over_time(snapshots).findings
    assert (broker.subject, bundle.subject) == ("a:1", "acme/orders/y")
    assert broker.figures == {"moves_from_broker": 2, "restarts": 3}
    golden(broker.evidence)


def found(**settings: str) -> Finding:
    """The finding of a bundle that went to and fro."""
    snapshots = owned("abab")
    snapshots[-1]["configuration"] = [
        {"broker": f"{name}:1", "key": key, "value": value} for name in "ab" for key, value in settings.items()
    ]
    (finding,) = over_time(snapshots).findings
    return finding


ON = {
    "loadBalancerSheddingEnabled": "true",
    "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
}
SHEDDING: dict[str, dict[str, str]] = {"on": ON, "off": ON | {"loadBalancerSheddingEnabled": "false"}, "not read": {}}


@pytest.mark.parametrize("settings", SHEDDING.values(), ids=SHEDDING)
def test_the_evidence_has_the_owners_with_times_and_what_may_move_it(settings: dict[str, str], golden: Golden) -> None:
    """The evidence lists the owners with times, and names the brokers' shedding only as a possible cause."""
    finding = found(**settings)
    assert finding.subject == "acme/orders/0x0_0x1"
    golden(finding.evidence)


def test_heartbeats_are_no_bundles() -> None:
    """The bundle of a heartbeat namespace is not found as moving."""
    assert over_time(owned("abab", "pulsar/east/a:1/0x0_0x1")).findings == ()


@pytest.mark.parametrize(
    ("owners", "policy", "words"),
    [
        ("a", {}, "there is 1."),
        ("aaa", {}, "at least 4 snapshots within 360 minutes"),
        ("aaaaaa", {"window_minutes": 30}, "at least 4 snapshots within 30 minutes"),
        ("aaa", {"warning_moves": 2}, None),
        ("aaaa", {}, None),
        ("aaaa", {"warning_moves": 6}, "at least 5 snapshots"),
    ],
)
def test_too_few_snapshots_cannot_tell(owners: str, policy: dict[str, int], words: str | None) -> None:
    """The check cannot tell with fewer snapshots than a finding needs, and it says how many are needed."""
    judgement = over_time(owned(owners), a_policy(bundle_flapping=policy))
    assert judgement.cannot_tell is None if words is None else words in str(judgement.cannot_tell)


def test_partial_snapshots_leave_silence_open(golden: Golden) -> None:
    """The check cannot tell when one of the snapshots is partial, since a move may have been missed."""
    snapshots = owned("aaaa")
    snapshots[1]["snapshot"][0]["unread_brokers"] = ["c:1"]
    golden(over_time(snapshots).cannot_tell)


def test_a_bundle_that_two_brokers_tell_of_is_just_moving() -> None:
    """A snapshot in which two brokers report the same bundle is not counted as a move."""
    snapshots = owned("b-ba-a", "x")
    for number in (1, 4):
        unsure = a_snapshot({"x": "a"})["bundles"] + a_snapshot({"x": "b"})["bundles"]
        snapshots[number]["bundles"] = unsure + a_snapshot({"rests": "d"})["bundles"]
    assert over_time(snapshots, a_policy(bundle_flapping={"warning_moves": 2})).findings == ()


def test_only_the_worst_hundred_are_listed() -> None:
    """At most 100 bundles are listed, those that moved most first, and the rest is counted."""
    snapshots = [
        a_snapshot({f"x{number:03}": owner for number in range(101)} | {"y": "abba"[step]} | {"z": worst}, 3 - step)
        for step, (owner, worst) in enumerate(zip("abac", "abab", strict=True))
    ]
    judgement = over_time(snapshots)
    assert (len(judgement.findings), judgement.more) == (100, 2)
    assert judgement.findings[0].subject == "acme/orders/z"
    assert judgement.findings[1].subject == "acme/orders/x000"
