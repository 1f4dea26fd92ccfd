"""Figures and names in brokers' documents that no table or address holds: said, never taken, and all else is there."""

from __future__ import annotations

import dataclasses
import json
import re
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import pytest

from pulsar_steward.errors import AdminError, BrokenAnswer
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar.exchange import Exchange, Response
from pulsar_steward.pulsar.own_settings import defaults_in
from pulsar_steward.pulsar.reader import Reader
from tests.attacks.wire_replay import BASE, LOWER, UPPER, Recorded, brokers, overview

OUT_OF_RANGE = ["9223372036854775808", "-9223372036854775809", "1e400", "NaN", '"NaN"', "1.5e9", "[]"]


FIGURES = ["msgBacklog", "unackedMessages", "availablePermits", "storageSize", "producerCount"]
ALONE = {(key, value) for key in ("unackedMessages", "storageSize") for value in ("NaN", '"NaN"')}
"""What costs that figure alone, and not its broker."""


@pytest.mark.parametrize(("key", "value"), [each for each in product(FIGURES, OUT_OF_RANGE) if each not in ALONE])
def test_a_number_that_no_table_holds_makes_one_broker_unread(
    key: str, value: str, recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """A figure out of range makes its broker unread with the failed call named, and other brokers stay as they were."""
    url, before = recorded.url(1, "broker-stats/topics"), brokers(recorded)
    body = re.sub(
        rb'("%s": ?)[0-9]+' % key.encode(), rb"\g<1>" + value.encode(), bytes(recorded.answers[url].body), count=1
    )
    assert body != recorded.answers[url].body
    replayed[url] = Response(200, None, body, "OK", None)
    after, (mine, other) = brokers(recorded), recorded.brokers[1:]
    assert after.unread == {mine}
    assert after.rows[other] == before.rows[other]
    ((_, row),) = after.rows[mine]
    assert row["failure"].startswith("GET /admin/v2/broker-stats/topics at")


def test_sums_that_no_table_holds_make_one_broker_unread(
    recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """A broker is listed as unread when the sum of its topics' figures is out of range."""
    url = recorded.url(1, "broker-stats/topics")
    document = json.loads(bytes(recorded.answers[url].body))
    ((bundle, domains),) = list(document["acme/orders"].items())[:1]
    (topic,) = list(domains["persistent"].values())[:1]
    domains["persistent"] = {f"{BASE}{number}": {**topic, "backlogSize": 1 << 53} for number in range(2048)}
    replayed[url] = Response(200, None, json.dumps(document).encode(), "OK", None)
    after = brokers(recorded)
    assert bundle in {LOWER, UPPER}
    assert after.unread == {recorded.brokers[1]}


def test_the_largest_figures_that_are_told_are_kept(
    recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """The largest figure in range is kept unchanged in the rows, and every broker is read."""
    url = recorded.url(1, "broker-stats/topics")
    most = 1 << 53
    text = re.sub(rb'("unackedMessages": ?)[0-9]+', rb"\g<1>%d" % most, bytes(recorded.answers[url].body))
    replayed[url] = Response(200, None, text, "OK", None)
    after = brokers(recorded)
    assert after.unread == set()
    found = [row["unacked_messages"] for name, row in after.rows[recorded.brokers[1]] if name == "subscriptions"]
    assert set(found) == {most}


def test_a_first_broker_that_is_sick_does_not_keep_the_others_from_telling(
    recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """An answer that cannot be read makes the reader ask the next address."""
    replayed[f"http://{recorded.brokers[0]}/admin/v2/tenants"] = Response(200, None, b'{"busy": true}', "OK", None)
    settings = dataclasses.replace(recorded.settings, limits=AdminPolicy(read_attempts=2))
    replayed[f"http://{recorded.brokers[1]}/admin/v2/tenants"] = Response(200, None, b'["acme"]', "OK", None)
    with Reader(settings) as reader:
        assert reader.tenants() == ("acme",)


@pytest.mark.parametrize("name", ["evil@127.0.0.1:1", "127.0.0.1:1/admin", "127.0.0.1:1?x=", "127.0.0.1", "", "a b:1"])
def test_what_is_no_broker_is_not_called(
    name: str, recorded: Recorded, replayed: dict[str, Response | AdminError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listed broker name that is not a host and a port is refused as a broken answer, and only brokers are asked."""
    asked: list[str] = []
    replay = Exchange.whole

    def noted(self: Exchange, method: str, url: str, *rest: Any) -> Response:
        asked.append(urlsplit(url).netloc)
        return replay(self, method, url, *rest)

    monkeypatch.setattr(Exchange, "whole", noted)
    listed = json.dumps([*recorded.brokers, name]).encode()
    replayed[recorded.url(0, "/admin/v2/brokers")] = Response(200, None, listed, "OK", None)
    with pytest.raises(BrokenAnswer, match="cannot be read: Expected `str` matching regex"):
        overview(recorded)
    assert asked
    assert set(asked) <= set(recorded.brokers)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "1e300", "9" * 400, "-" + "9" * 400, "", "x", "0x10"])
def test_a_default_that_is_no_number_counts_as_not_set(value: str) -> None:
    """A broker's default that is no number, or out of range, counts as not set."""
    keys = ("backlogQuotaDefaultLimitGB", "defaultRetentionTimeInMinutes", "ttlDurationDefaultInSeconds")
    assert defaults_in({**dict.fromkeys(keys, value), "backlogQuotaDefaultRetentionPolicy": "producer_exception"}) == {}
