"""The calls as data: what a dry run prints is what is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.split import BeforeSplit
from pulsar_steward.errors import InvalidName
from pulsar_steward.pulsar import calls
from tests.builders import BUNDLE, a_move, a_split, broker

if TYPE_CHECKING:
    from pulsar_steward.pulsar.calls import Call


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            calls.unload("pulsar/system", BUNDLE, "host:8080"),
            f"PUT /admin/v2/namespaces/pulsar/system/{BUNDLE}/unload?destinationBroker=host:8080",
        ),
        (
            calls.split("pulsar/system", BUNDLE, "by_chance"),
            f"PUT /admin/v2/namespaces/pulsar/system/{BUNDLE}/split?unload=false&splitAlgorithmName=by_chance",
        ),
        (
            calls.look_up("persistent://a/b/odd name/with?marks"),
            "GET /lookup/v2/topic/persistent/a/b/odd%20name%2Fwith%3Fmarks",
        ),
        (
            calls.unload("te?nant/na#me", BUNDLE, "a&b=c:80"),
            f"PUT /admin/v2/namespaces/te%3Fnant/na%23me/{BUNDLE}/unload?destinationBroker=a%26b%3Dc:80",
        ),
    ],
    ids=["unload", "split", "lookup", "names that would end a path"],
)
def test_a_call_in_words(call: Call, text: str) -> None:
    """A call is printed as its method, quoted path and query, without host or token."""
    assert str(call) == text


@pytest.mark.parametrize("namespace", ["../clusters", "a/..", "/b", "a"])
def test_a_name_that_would_lead_elsewhere_is_no_call(namespace: str) -> None:
    with pytest.raises(InvalidName, match="cannot be a part"):
        calls.unload(namespace, BUNDLE, broker(0))


def test_each_change_makes_its_own_call() -> None:
    assert kind_of(a_move()).call() == calls.unload("pulsar/system", BUNDLE, broker(1))
    assert kind_of(a_split()).call().query["unload"] == "false"
    assert kind_of(a_split()).completion(BeforeSplit(owner=broker(0), bundles=[BUNDLE])) is None
