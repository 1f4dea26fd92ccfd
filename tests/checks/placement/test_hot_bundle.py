"""Bundles that are too much for the broker that has to take them as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import bundle_load
from pulsar_steward.model.bundles import ranges_of
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import judge_rows, severity_of, told

if TYPE_CHECKING:
    from tests.golden import Golden

RANGES = [str(each) for each in ranges_of([f"0x{number:08x}" for number in range(0, 2**32, 2**28)] + ["0xffffffff"])]
DEFAULTS = {
    "loadBalancerNamespaceBundleMaxSessions": "1000",
    "loadBalancerNamespaceBundleMaxMsgRate": "30000",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "100",
}
Row = dict[str, Any]


def bundle(
    number: int, megabytes: float = 1, clients: int = 10, rate: float = 100, namespace: str = "acme/orders"
) -> Row:
    """An owned bundle, half of whose bytes and messages go in and half out."""
    return {
        "namespace": namespace,
        "bundle": RANGES[number],
        "owner": "a:1",
        "owner_known": True,
        "topics": 4,
        "producers": clients // 2,
        "consumers": clients - clients // 2,
        "message_rate_in": rate / 2,
        "message_rate_out": rate / 2,
        "throughput_in_bytes": megabytes * 500_000.0,
        "throughput_out_bytes": megabytes * 500_000.0,
    }


def topic(name: str, megabytes: float = 0, clients: int = 0, number: int = 0) -> Row:
    return {
        "topic": f"persistent://acme/orders/{name}",
        "namespace": "acme/orders",
        "bundle": RANGES[number],
        "producers": 0,
        "consumers": clients,
        "throughput_in_bytes": megabytes * 1e6,
        "throughput_out_bytes": 0.0,
    }


def snapshot(bundles: list[Row], topics: list[Row] | None = None, cpu: float = 30, limits: Row | None = None) -> Any:
    settings = DEFAULTS if limits is None else limits
    return {
        "brokers": [{"broker": "a:1", "read": True, "cpu_percent": float(cpu)}],
        "bundles": bundles,
        "topics": topics or [],
        "configuration": [{"broker": "a:1", "key": key, "value": value} for key, value in settings.items()],
    }


def quiet_ones(count: int, megabytes: float = 1) -> list[Row]:
    """Bundles that carry little, and one that carries nothing and so does not lower the mean."""
    idle = bundle(15, megabytes=0, clients=0, rate=0)
    return [*(bundle(number, megabytes) for number in range(1, count + 1)), idle]


def several(hot: int, busy: int, megabytes: float = 100, others: float = 1) -> list[Row]:
    """Bundles of which a few are hot."""
    return [
        bundle(0, megabytes if number < hot else others, namespace=f"acme/n{number:03}") for number in range(hot + busy)
    ]


CASES: dict[str, tuple[Any, Severity | None]] = {
    "even and busy": (snapshot([bundle(number, megabytes=90, clients=900) for number in range(4)]), None),
    "ten times the mean of the others": (
        snapshot([bundle(0, megabytes=30), *quiet_ones(13, megabytes=3)]),
        Severity.WARNING,
    ),
    "less than that": (snapshot([bundle(0, megabytes=29.9), *quiet_ones(13, megabytes=3)]), None),
    "too few are busy to compare with": (snapshot([bundle(0, megabytes=90), *quiet_ones(8)]), None),
    "of little, ten times is little": (snapshot([bundle(0, megabytes=19.9), *quiet_ones(14)], limits={}), None),
    "clients": (snapshot([bundle(0, clients=1000), *quiet_ones(13)]), Severity.WARNING),
    "fewer clients": (snapshot([bundle(0, clients=999), *quiet_ones(13)]), None),
    "an owner at its limit": (snapshot([bundle(0, clients=1000), *quiet_ones(13)], cpu=85), Severity.CRITICAL),
    "over a broker's limit alone": (
        snapshot([bundle(number, clients=1001 if number else 1000) for number in range(2)]),
        Severity.INFO,
    ),
    "a limit and a busy owner": (snapshot([bundle(0, rate=30_001)], cpu=90), Severity.WARNING),
    "bandwidth counts in mebibytes": (snapshot([bundle(0, megabytes=104.8)]), None),
    "more bandwidth": (snapshot([bundle(0, megabytes=104.9)]), Severity.INFO),
    "a limit that is off": (
        snapshot([bundle(0, clients=5000)], limits=DEFAULTS | {"loadBalancerNamespaceBundleMaxSessions": "-1"}),
        None,
    ),
    "one topic, and an owner with room": (
        snapshot([bundle(0, megabytes=90), *quiet_ones(13)], [topic("hot", 45)], cpu=84),
        Severity.INFO,
    ),
    "one topic, and an owner at its limit": (
        snapshot([bundle(0, megabytes=90), *quiet_ones(13)], [topic("hot", 45)], cpu=85),
        Severity.CRITICAL,
    ),
    "no topic alone, and an owner with room": (
        snapshot([bundle(0, megabytes=90), *quiet_ones(13)], [topic("hot", 44)], cpu=84),
        Severity.WARNING,
    ),
    "a heartbeat is no bundle": (snapshot([bundle(0, clients=5000, namespace="pulsar/lab/a:1")]), None),
}


@pytest.mark.parametrize(("rows", "severity"), CASES.values(), ids=CASES)
def test_bundles_are_judged(rows: Any, severity: Severity | None) -> None:
    """A bundle is judged by the mean of busy bundles, by its broker's split limits and by its owner's CPU."""
    assert severity_of(judge_rows(bundle_load.HOT_BUNDLE, rows)) is severity


@pytest.mark.parametrize(
    ("bundles", "found"),
    [(several(3, 27), 3), (several(4, 27), 0), (several(140, 60, megabytes=0.001, others=25), 0)],
    ids=["three of thirty", "four of 31 are more than a tenth", "most bundles are nearly idle"],
)
def test_a_few_hot_bundles_do_not_hide_each_other(bundles: list[Row], found: int) -> None:
    """Hot bundles are found if they are at most a tenth; many idle bundles do not make the others hot."""
    assert len(judge_rows(bundle_load.HOT_BUNDLE, snapshot(bundles, limits={})).findings) == found


@pytest.mark.parametrize(("brokers", "found"), [(5, True), (1, False)])
def test_what_a_broker_hardly_notices_is_not_hot(brokers: int, *, found: bool) -> None:
    """A bundle is hot only if its throughput is a large share of what a broker carries on average."""
    bundles = [bundle(0, megabytes=25), *several(0, 230, others=2)]
    for number, row in enumerate(bundles):
        row["owner"] = f"{'abcde'[number % brokers]}:1"
    assert bool(judge_rows(bundle_load.HOT_BUNDLE, snapshot(bundles, limits={})).findings) is found


HOT_BYTES = [bundle(0, megabytes=90), *quiet_ones(13)]
HOT_CLIENTS = [bundle(0, clients=1000), *quiet_ones(13)]
UNDIVIDED = "a split cannot help, more partitions can. Its broker has room for it."
HELP: dict[str, tuple[list[Row], list[Row], str]] = {
    "one topic has half": (
        HOT_BYTES,
        [topic("hot", 45, clients=1), topic("x", 44, clients=90), topic("other", 400, number=1)],
        f"persistent://acme/orders/hot has 50 % of its throughput: {UNDIVIDED}",
    ),
    "no topic has half": (
        HOT_BYTES,
        [topic("hot", 44), topic("x", 43)],
        "Its hottest topic persistent://acme/orders/hot has 49 % of its throughput: a split can help.",
    ),
    "clients are counted where clients are the trouble": (
        HOT_CLIENTS,
        [topic("many", clients=800), topic("bytes", 1)],
        f"persistent://acme/orders/many has 80 % of its clients: {UNDIVIDED}",
    ),
    "topics are not known": (HOT_BYTES, [], "Which of its topics is the hottest is not known."),
}


@pytest.mark.parametrize(("bundles", "topics", "words"), HELP.values(), ids=HELP)
def test_it_says_whether_a_split_can_help(bundles: list[Row], topics: list[Row], words: str) -> None:
    """The evidence says whether a split can help, by the share of the bundle's hottest topic."""
    (finding,) = judge_rows(bundle_load.HOT_BUNDLE, snapshot(bundles, topics)).findings
    assert finding.evidence.endswith(f". {words}")


def test_what_it_says(golden: Golden) -> None:
    """The bundle's place, its load and the comparison that makes it high; those with most throughput come first."""
    hot = snapshot([bundle(0, megabytes=120, clients=8000, rate=500), *quiet_ones(13)], [topic("hot", 60)])
    many = [bundle(0, megabytes=105 + number, namespace=f"acme/n{number:03}") for number in range(102)]
    cases = {
        "one is hot": hot,
        "the brokers' limits were not read": snapshot([bundle(0)], limits={}),
        "they were": snapshot([bundle(0)]),
        "more than a hundred": snapshot(many),
    }
    golden(told({rule: judge_rows(bundle_load.HOT_BUNDLE, rows) for rule, rows in cases.items()}))


@pytest.mark.parametrize(
    ("own", "others", "severity"),
    [
        ({"megabytes": 240, "rate": 24_000}, 1, Severity.WARNING),
        ({"megabytes": 240, "rate": 24_000, "topics": 1}, 1, Severity.INFO),
        ({"megabytes": 150}, 200, Severity.INFO),
        ({"megabytes": 1, "clients": 2000}, 0.1, Severity.INFO),
        ({"megabytes": 19, "rate": 40_000}, 1, Severity.INFO),
    ],
    ids=["everything", "a single topic", "no more than its share", "clients alone", "few bytes"],
)
def test_what_no_move_evens_out_is_a_warning(own: Row, others: float, severity: Severity) -> None:
    """A bundle over its broker's limits with more bytes than a broker's share is split, as it may not be moved away."""
    own = dict(own)
    topics = own.pop("topics", 4)
    first = bundle(0, **own) | {"topics": topics}
    rows = snapshot([first, *(bundle(number, others) | {"owner": f"{number}:1"} for number in (1, 2))])
    rows["brokers"] += [{"broker": f"{number}:1", "read": True, "cpu_percent": 30.0} for number in (1, 2)]
    found = {each.subject: each.severity for each in judge_rows(bundle_load.HOT_BUNDLE, rows).findings}
    assert found[f"acme/orders/{RANGES[0]}"] is severity
