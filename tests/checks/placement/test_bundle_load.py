"""Bundles that are too much for one broker, that topics fill unevenly, and how brokers would split them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement import bundle_load
from pulsar_steward.checks.placement.bundle_load import SPLIT_ALGORITHM, SPLIT_ALGORITHM_CHECK
from pulsar_steward.model.bundles import ranges_of
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import judge_rows, severity_of, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
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


BOUNDARIES = ["0x0", "0x40000000", "0x80000000", "0xc0000000", "0xe0000000", "0xffffffff"]
TOPICS_RANGES = [str(each) for each in ranges_of(BOUNDARIES)]

TOPICS_CASES: dict[str, tuple[list[int | None], int | None]] = {
    "even topics are fine": ([100, 100, 100, 100], None),
    "half of the topics in one of four is three times the others": ([200, 80, 70, 50], 200),
    "less than that is not": ([199, 81, 70, 50], None),
    "three quarters in one of two are": ([75, 25], 75),
    "fewer in one of two are not": ([74, 26], None),
    "of three, it takes more than half": ([60, 20, 20], 60),
    "of more than four, the mean of all counts": ([120, 20, 20, 20, 20], 120),
    "which takes more of them": ([119, 21, 20, 20, 20], None),
    "few topics are left alone": ([99, 0, 0, 0], None),
    "the fullest may be any bundle": ([0, 0, 10, 300], 300),
    "a thousand in one bundle are too many": ([1000, 999, 999, 999], 1000),
    "a single bundle has no mean": ([999], None),
    "a single bundle has a limit": ([1000], 1000),
    "without all bundles the mean says nothing": ([300, None, None, 0], None),
    "without all bundles the limit stands": ([1000, None, None, 0], 1000),
}


def bundle_rows(namespace: str, topics: list[int | None]) -> list[dict[str, Any]]:
    """A namespace's bundles; None: an unread broker may own it."""
    return [
        {"namespace": namespace, "bundle": text, "topics": count, "owner_known": count is not None}
        for text, count in zip(TOPICS_RANGES, topics, strict=False)
    ]


@pytest.mark.parametrize(("topics", "most"), TOPICS_CASES.values(), ids=TOPICS_CASES)
def test_a_namespace_is_judged(topics: list[int | None], most: int | None) -> None:
    """A namespace has at most one finding, which is about its fullest bundle."""
    found = judge_rows(bundle_load.BUNDLE_TOPIC_SKEW, {"bundles": bundle_rows("acme/orders", topics)}).findings
    assert [finding.figures["most_topics"] for finding in found] == ([most] if most else [])


@pytest.mark.parametrize(("most", "found"), [(49, False), (50, True)])
def test_a_few_topics_are_no_crowd(most: int, *, found: bool) -> None:
    rows = [
        {
            "namespace": "acme/orders",
            "bundle": f"0x{number:08x}_0x{number + 1:08x}",
            "topics": count,
            "owner_known": True,
        }
        for number, count in enumerate([most, *[1] * 63])
    ]
    assert bool(judge_rows(bundle_load.BUNDLE_TOPIC_SKEW, {"bundles": rows}).findings) is found


def test_what_it_says_of_topics(golden: Golden) -> None:
    """The lowest of equally full bundles; an unread namespace is judged by the cluster's thresholds."""
    names = ("big/a", "big/b", "usual/c", "unread/d")
    four: Rows = {
        "namespaces": [{"namespace": name} for name in names if name != "unread/d"],
        "bundles": [row for name in names for row in bundle_rows(name, [1500, 1400, 1400, 1400])],
    }
    high, low = ({"bundle_topic_skew": {"warning_topics_per_bundle": topics}} for topics in (2000, 1200))
    own = Policy.model_validate({"tenants": {"big": high}, "namespaces": {"big/b": low}})
    two = bundle_rows("b/b", [1000, 1000, 0, 0]) + bundle_rows("a/a", [5, 2000, 3, 4])
    many = [row for number in range(102) for row in bundle_rows(f"acme/n{number:03}", [1000 + number])]
    cases: dict[str, tuple[Any, ...]] = {
        "two namespaces": ({"bundles": two},),
        "thresholds of a tenant and of a namespace": (four, own),
        "more than a hundred": ({"bundles": many},),
    }
    golden(told({rule: judge_rows(bundle_load.BUNDLE_TOPIC_SKEW, *case) for rule, case in cases.items()}))


BY_RANGE, BY_COUNT = "range_equally_divide", "topic_count_equally_divide"


def rows(*algorithms: str | None, topics: tuple[int | None, ...] = (600, 400)) -> Any:
    """A broker with each algorithm, None where it was not read, and bundles with so many topics."""
    return {
        "brokers": [{"broker": f"{number}:1", "read": True} for number in range(len(algorithms))],
        "configuration": [
            {"broker": f"{number}:1", "key": SPLIT_ALGORITHM, "value": value}
            for number, value in enumerate(algorithms)
            if value is not None
        ],
        "bundles": [
            {"namespace": f"acme/n{number}", "bundle": "0x00000000_0xffffffff", "topics": count}
            for number, count in enumerate(topics)
        ],
    }


SPLIT_CASES: dict[str, tuple[Any, int]] = {
    "all by range": (rows(BY_RANGE, BY_RANGE), 2),
    "one by range": (rows(BY_COUNT, BY_RANGE), 1),
    "as somebody typed it": (rows(" Range_Equally_Divide "), 1),
    "by the number of topics": (rows(BY_COUNT, BY_COUNT), 0),
    "by load": (rows("flow_or_qps_equally_divide"), 0),
    "not read": (rows(None), 0),
    "a topic less": (rows(BY_RANGE, topics=(600, 399, None)), 0),
    "no topics known": (rows(BY_RANGE, topics=(None,)), 0),
}


@pytest.mark.parametrize(("snapshot", "brokers"), SPLIT_CASES.values(), ids=SPLIT_CASES)
def test_brokers_that_split_by_range_are_counted(snapshot: Any, brokers: int) -> None:
    """In a cluster of 1000 loaded topics or more, over all bundles."""
    findings = judge_rows(SPLIT_ALGORITHM_CHECK, snapshot).findings
    assert [each.figures for each in findings] == ([{"brokers": brokers, "topics": 1000}] if brokers else [])


def test_it_is_information(golden: Golden) -> None:
    """It is every cluster's default, and no trouble by itself."""
    (finding,) = judge_rows(SPLIT_ALGORITHM_CHECK, rows(BY_COUNT, BY_RANGE)).findings
    assert finding.severity is Severity.INFO
    golden(finding.evidence)
