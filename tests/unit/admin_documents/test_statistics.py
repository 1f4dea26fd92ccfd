"""Documents of the admin API as brokers of all versions write them: statistics, internals, isolation and metrics."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from pulsar_steward.errors import BrokenAnswer, ConfigurationError
from pulsar_steward.facts.backlogs import unshown_holders
from pulsar_steward.model.isolation import AllowedBrokers, isolation_policies
from pulsar_steward.model.subscription import Holder
from pulsar_steward.pulsar.metrics import Exposition, Sample
from pulsar_steward.pulsar.owner import InternalDetail
from pulsar_steward.pulsar.statistics import bundles_in, clients_by_bundle
from tests.cases import row_by_row

FULL: dict[str, Any] = {
    "publishers": [{"producerId": 3, "metadata": {}}],
    "replication": {},
    "subscriptions": {
        "s1": {
            "consumers": [{"consumerName": "a"}, {"consumerName": "b"}],
            "msgBacklog": 17,
            "unackedMessages": 5,
            "blockedSubscriptionOnUnackedMsgs": True,
            "totalNonContiguousDeletedMessagesRange": 2,
            "type": "Shared",
            "msgRateOut": 0.9,
        },
        "__compaction": {"consumers": [], "msgBacklog": 0, "type": "None"},
    },
    "producerCount": 1,
    "msgRateIn": 0.9,
    "msgThroughputIn": 121.0,
    "storageSize": 2210,
    "backlogSize": 110,
}
VOLATILE = {"publishers": [], "replication": {}, "subscriptions": {}, "producerCount": 4}
DOCUMENT = {
    "acme/orders": {
        "0x00000000_0x80000000": {
            "persistent": {"persistent://acme/orders/a": FULL},
            "non-persistent": {"non-persistent://acme/orders/n": VOLATILE},
        },
        "0x80000000_0xffffffff": {},
    }
}


def test_topics_of_every_domain_are_read() -> None:
    """Persistent and non-persistent topics of a bundle are read together; figures that not all have may be missing."""
    first, second = bundles_in(json.dumps(DOCUMENT).encode(), "b:1")

    topic = first.topics["persistent://acme/orders/a"]
    assert (first.namespace, first.bundle) == ("acme/orders", "0x00000000_0x80000000")
    assert (topic.producer_count, topic.consumer_count, topic.backlog_size) == (1, 2, 110)
    assert topic.subscriptions["s1"].total_non_contiguous_deleted_messages_range == 2
    assert topic.subscriptions["__compaction"].unacked_messages is None
    assert first.topics["non-persistent://acme/orders/n"].producer_count == 4
    assert second.topics == {}


def test_a_very_large_bundle_comes_in_parts() -> None:
    topics = {f"persistent://acme/orders/{number}": FULL for number in range(2_500)}
    document = {"acme/orders": {"0x00000000_0xffffffff": {"persistent": topics}}}

    whole = list(bundles_in(json.dumps(document).encode(), "b:1"))
    parts = list(bundles_in(json.dumps(document).encode(), "b:1", large=1_000_000))

    assert [len(part.topics) for part in whole] == [2_500]
    assert [len(part.topics) for part in parts] == [1_000, 1_000, 500]
    assert {part.bundle for part in parts} == {"0x00000000_0xffffffff"}
    assert {name: topic for part in parts for name, topic in part.topics.items()} == whole[0].topics


def test_clients_are_counted_by_bundle() -> None:
    """The clients of a bundle are the producers and consumers of all its topics."""
    clients = clients_by_bundle(json.dumps(DOCUMENT).encode())

    assert clients == {"acme/orders/0x00000000_0x80000000": 7, "acme/orders/0x80000000_0xffffffff": 0}


@row_by_row(
    "document",
    b"",
    b"<html>",
    json.dumps(DOCUMENT).encode()[:-40],
    b'{"a/b":{"0x0_0x1":{"persistent":{"t":[]}}}}',
    b"\xff",
)
def test_a_document_that_cannot_be_read_is_an_error(document: bytes) -> None:
    """Statistics that cannot be read raise `BrokenAnswer`, which names the broker that sent them."""
    with pytest.raises(BrokenAnswer, match="broker-stats/topics at b:1"):
        list(bundles_in(document, "b:1"))


NO_NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b'"NaN"', b'"-Infinity"', b"9223372036854775807.9223372036854775807"]


@pytest.mark.parametrize("figure", NO_NUMBERS)
@pytest.mark.parametrize("large", [1, 32 << 20])
def test_a_figure_that_is_no_number_costs_itself_alone(figure: bytes, large: int) -> None:
    """It is not told; all else of the broker is read, whether a bundle is decoded at once or in parts."""
    document = json.dumps(DOCUMENT).encode().replace(b'"msgRateIn": 0.9', b'"msgRateIn": ' + figure)
    first = next(bundles_in(document, "b:1", large=large))

    topic = first.topics["persistent://acme/orders/a"]
    assert topic.msg_rate_in is None
    assert (topic.msg_throughput_in, topic.subscriptions["s1"].msg_backlog) == (121.0, 17)
    assert clients_by_bundle(document)["acme/orders/0x00000000_0x80000000"] == 7


def test_a_name_like_such_a_figure_stays_what_it_is() -> None:
    """Names are kept as they are, also in a document with such a figure."""
    named = {**FULL, "subscriptions": {"a:NaN,": FULL["subscriptions"]["s1"]}}
    document = {"acme/orders": {"0x00000000_0xffffffff": {"persistent": {'"x":NaN,': named}}}}
    (only,) = bundles_in(json.dumps(document).encode().replace(b'"msgRateIn": 0.9', b'"msgRateIn":NaN'), "b:1")
    ((name, topic),) = only.topics.items()
    assert (name, list(topic.subscriptions), topic.msg_rate_in) == ('"x":NaN,', ["a:NaN,"], None)


POSITIONS = {
    "nothing": "55:-1",
    "some": "55:99",
    "a-ledger": "55:499",
    "much": "60:299",
    "all": "60:399",
    "gone": "12:7",
    "unread": "",
}
TOPIC = msgspec.convert(
    {
        "currentLedgerEntries": 400,
        "currentLedgerSize": 4000,
        "ledgers": [{"ledgerId": 55, "entries": 500, "size": 1_000_000}, {"ledgerId": 60, "entries": 0, "size": 0}],
        "cursors": {
            name: {"markDeletePosition": position, "cursorLedger": 7, "cursorLedgerLastEntry": 0}
            for name, position in POSITIONS.items()
        },
    },
    InternalDetail,
)
"""A topic of 900 entries, of which 400 are in the ledger that is written to."""


@row_by_row(
    "cursor, behind, size, ledger",
    ("nothing", 900, 1_004_000, 55),
    ("some", 800, 806_000, 55),
    ("a-ledger", 400, 6_000, 60),
    ("much", 100, 1_010, 60),
    ("all", 0, 10, 60),
    ("gone", 900, 1_004_000, 12),
    ("unread", None, None, None),
)
def test_how_far_a_cursor_is_behind(cursor: str, behind: int | None, size: int | None, ledger: int | None) -> None:
    """A cursor's entries and bytes are those after its position, also in the ledger that is written to.

    Bytes are an entry more, as brokers take a position for so many entries.
    """
    assert (TOPIC.entries_behind(cursor), TOPIC.first_unread_ledger(cursor)) == (behind, ledger)
    assert TOPIC.bytes_behind(cursor) == size


def test_cursors_that_statistics_do_not_show_are_found() -> None:
    """Cursors that only ``internalStats`` have are holders, unless they have consumed everything."""
    found = unshown_holders(TOPIC, ["nothing", "some", "much", "gone", "unread"])
    assert found == (Holder(name="a-ledger", entries=400),)
    assert unshown_holders(TOPIC, POSITIONS.keys() - {"unread"}) == (Holder(name="unread", entries=None),)


A, B, C = "10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"


def policy(namespaces: str, primary: str, secondary: str = "", least: str = "1") -> dict[str, Any]:
    """A policy in the shape that a 4.0.7 broker answered."""
    return {
        "namespaces": [namespaces],
        "primary": [primary],
        "secondary": [secondary] if secondary else [],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": least, "usage_threshold": "80"},
        },
    }


CASES = {
    "no policy leaves every broker": ([], None),
    "primaries serve alone while there are enough": ([policy("acme/.*", r"10\.0\.0\.1", ".*")], (A,)),
    "secondaries serve too when primaries are too few": ([policy("acme/.*", r"10\.0\.0\.1", r".*\.2", "2")], (A, B)),
    "no matching primary leaves the secondaries": ([policy("acme/.*", "nobody", r".*\.3")], (C,)),
    "nothing that matches leaves no broker": ([policy("acme/.*", "nobody")], ()),
    "another namespace's primaries are taken": ([policy("other/.*", r"10\.0\.0\.1")], (B, C)),
    "another namespace's secondaries are not": ([policy("other/.*", "nobody", ".*")], None),
    "a pattern has to match the whole namespace": ([policy("acme", r"10\.0\.0\.1")], (B, C)),
    "a pattern has to match the whole host": ([policy("acme/.*", "10")], ()),
    "a pattern with the port matches nothing": ([policy("acme/.*", "10.0.0.1:8080")], ()),
    "of two policies what both allow": ([policy("acme/.*", r".*\.[12]"), policy(".*/orders", r".*\.[23]")], (B,)),
    "a primary pattern that only Java reads allows nothing": ([policy("acme/.*", r"\p{Alnum}+", ".*")], ()),
    "a namespace pattern that only Java reads counts as matching": ([policy(r"\p{Alpha}+/.*", r".*\.1")], (A,)),
    "a foreign primary pattern that only Java reads takes all": ([policy("other/.*", r"\p{Alnum}+")], ()),
}


@pytest.mark.parametrize(("policies", "expected"), CASES.values(), ids=CASES)
def test_allowed_brokers(policies: list[dict[str, Any]], expected: tuple[str, ...] | None) -> None:
    """The brokers left to a namespace are those that a broker itself would choose from, or fewer."""
    document = {f"p{number}": each for number, each in enumerate(policies)}

    allowed = AllowedBrokers(isolation_policies(document), [C, A, B]).of("acme/orders")
    assert allowed == (None if expected is None else set(expected))


def test_an_ipv6_host_is_matched_with_its_brackets() -> None:
    """An isolation policy's pattern is matched against an IPv6 host with its brackets, as in Java's URL."""
    policies = isolation_policies({"p": policy("acme/.*", r"\[::1\]")})

    assert AllowedBrokers(policies, ["[::1]:8080", A]).of("acme/orders") == frozenset({"[::1]:8080"})


@pytest.mark.parametrize("document", [{"p": {"namespaces": "acme"}}, {"p": policy("a", "b", least="many")}])
def test_a_policy_of_another_shape_is_an_error(document: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="isolation policies cannot be read"):
        isolation_policies(document)


TEXT = rb"""# TYPE jvm_threads_current gauge
jvm_threads_current{cluster="local"} 73.0
jvm_threads_current_daemon{cluster="local"} 70.0
# TYPE pulsar_delayed gauge
pulsar_delayed{cluster="local",topic="a"} 0
pulsar_delayed{cluster="local",topic="b"} 0.0
pulsar_delayed{cluster="local",topic="c"} 7
pulsar_delayed_other{cluster="local"} 9
pulsar_lookup{cluster="local",quantile="1.0"} -Inf
pulsar_ml{cluster="local", namespace="acme/\"x\\n\"", quantile="0.0_0.5"} 1.5E3
up 1 1700000000000
uptime 5
broken{cluster="local" 4
pulsar_nan NaN
"""


def read(text: bytes, wanted: dict[str, float | None], piece: int = 7, most: int = 10_000) -> list[Sample]:
    """The samples of a text that comes in small pieces."""
    return list(Exposition((text[at : at + piece] for at in range(0, len(text), piece)), most).samples(wanted))


@pytest.mark.parametrize("piece", [1, 7, 64, 10_000])
def test_samples_are_read_whatever_pieces_they_come_in(piece: int) -> None:
    found = read(TEXT, {"jvm_threads_current": None, "pulsar_ml": None, "up": None, "pulsar_lookup": None}, piece)

    assert found == [
        Sample("jvm_threads_current", {"cluster": "local"}, 73.0),
        Sample("pulsar_lookup", {"cluster": "local", "quantile": "1.0"}, -math.inf),
        Sample("pulsar_ml", {"cluster": "local", "namespace": 'acme/"x\\n"', "quantile": "0.0_0.5"}, 1500.0),
        Sample("up", {}, 1.0),
    ]


def test_of_what_rests_the_first_and_all_that_do_not_rest_are_kept() -> None:
    """Of the samples with the resting value only the first is kept; all samples with other values are kept."""
    assert [sample.labels["topic"] for sample in read(TEXT, {"pulsar_delayed": 0})] == ["a", "c"]
    assert [sample.labels["topic"] for sample in read(TEXT, {"pulsar_delayed": None})] == ["a", "b", "c"]
    assert read(TEXT, {"pulsar_no_such": 0}) == []


def test_series_whose_names_hold_a_thread_are_known_by_their_endings() -> None:
    """A series is read if its name has a wanted ending, and not if it only starts like a wanted one or is invalid."""
    text = b"# TYPE ml_t-1_queue gauge\nml_t-1_queue 0\nml_t_2_queue 3\nml_t_2_queue_total 4\n"

    samples = Exposition([text], len(text)).samples({"ml_t_2": None}, endings=("_queue",))

    assert [(sample.series, sample.value) for sample in samples] == [("ml_t_2_queue", 3.0)]


def test_a_line_that_cannot_be_read_is_passed_over() -> None:
    """A line that cannot be parsed is skipped, and the value `NaN` of another line is read."""
    (found,) = read(TEXT, {"broken": None, "pulsar_nan": None})

    assert math.isnan(found.value)


def test_more_than_may_be_read_is_cut_and_said() -> None:
    """A text over the size limit is marked as cut, and the samples that were read until then are kept."""
    exposition = Exposition(iter([b"a 1\nb", b" 2\nc 3\n", b"d 4\n"]), 6)

    assert [sample.series for sample in exposition.samples(dict.fromkeys("abcd"))] == ["a", "b", "c"]
    assert exposition.cut


def test_a_text_of_just_the_size_is_whole() -> None:
    exposition = Exposition(iter([b"a 1\n", b"b 2"]), 7)

    assert [sample.series for sample in exposition.samples({"a": None, "b": None})] == ["a", "b"]
    assert not exposition.cut
