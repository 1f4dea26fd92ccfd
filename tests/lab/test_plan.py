"""Parts that a lab will consist of."""

from typing import Any

import pytest

from lab import plan
from lab.errors import LabError
from lab.model import Hosts, LabSpec


def test_every_part_has_ports_of_its_own() -> None:
    state = plan.new_state(LabSpec(name="a"))
    assert [part.name for part in state.parts] == ["broker-1", "broker-2", "broker-3", "bookie", "zookeeper"]
    assert len(plan.used_by(state)) == 8


@pytest.mark.parametrize(
    ("hosts", "expected"), [("same", ["127.0.0.1"] * 3), ("distinct", ["127.0.0.1", "127.0.0.2", "127.0.0.3"])]
)
def test_hosts(hosts: Hosts, expected: list[str]) -> None:
    """Brokers share one address or have one each, as the lab's option `hosts` says."""
    state = plan.new_state(LabSpec(name="a", hosts=hosts))
    assert [broker.host for broker in state.brokers] == expected


@pytest.mark.parametrize("base_port", [None, 21_500])
def test_a_broker_more_takes_new_ports(base_port: int | None) -> None:
    """A fourth broker is named by the next number and takes no port of another part, though none of them runs."""
    state = plan.new_state(LabSpec(name="a", base_port=base_port))
    grown = plan.with_one_more_broker(state)
    assert grown.brokers[:3] == state.brokers
    assert grown.brokers[3].name == "broker-4"
    assert len(plan.used_by(grown)) == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "../a"}, r"lab name '\.\./a'"),
        ({"name": ""}, "lab name ''"),
        ({"name": "a", "pulsar_version": "3.0.0"}, r"3\.0\.0 is not prepared: choose one of 4\.0\.7, 4\.2\.4"),
        ({"name": "a", "broker_versions": {2: "3.0.0"}}, r"3\.0\.0 is not prepared"),
        ({"name": "a", "brokers": 0}, "at least one broker"),
        ({"name": "a", "auth": "tls"}, "auth 'tls' needs listeners 'tls'"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LabError, match=message):
        LabSpec(**options)
