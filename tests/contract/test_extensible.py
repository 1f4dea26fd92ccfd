"""Brokers that run `ExtensibleLoadManagerImpl`: what differs from the modular one, simulated and real."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest

from benchmarks.observing import settings_of
from lab.model import VERSIONS
from lab.simulator import ClusterSpec, running_simulator
from lab.waiting import wait_until
from pulsar_steward.facts.load_manager import load_manager_of, usage_of
from pulsar_steward.model.broker_defaults import EXTENSIBLE, HISTORY, SERIES
from pulsar_steward.model.bundles import HEARTBEAT
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.metrics import Exposition, Sample
from pulsar_steward.pulsar.reader import Reader
from tests.contract.api import Api, BreakableTarget
from tests.contract.conftest import LAB_SETTINGS, SIMULATOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.pool import LabPool

NAMESPACES = "/admin/v2/namespaces"
SETTINGS = {**LAB_SETTINGS, "loadManagerClassName": f"org.apache.pulsar.broker.loadbalance.extensions.{EXTENSIBLE}"}
TOLD_WITHIN_S = 60
HAVE_IT = tuple(version for version in VERSIONS if version.startswith("4."))
"""Versions that it is tried on; it came with 3.0 (PIP-192), and matured afterwards."""


def real(version: str) -> object:
    """Three real brokers of a version, in `make test-all` only."""
    again = pytest.mark.extended("tests/apply/test_guards_before_calls.py")
    return pytest.param(version, id=f"real {version}", marks=[pytest.mark.live, again])


@pytest.fixture(scope="module", params=[SIMULATOR, *map(real, HAVE_IT)])
def target(request: pytest.FixtureRequest) -> Iterator[BreakableTarget]:
    """Each cluster once for all the tests of this file."""
    if request.param == SIMULATOR:
        with running_simulator(ClusterSpec(load_manager="extensible"), token="made-up-token") as simulator:
            yield simulator
        return
    labs: LabPool = request.getfixturevalue("labs")
    lab = labs.lab(auth="token", broker_settings=SETTINGS, pulsar_version=request.param)
    yield lab
    labs.discard(lab)


@pytest.fixture(scope="module")
def api(target: BreakableTarget) -> Iterator[Api]:
    headers = {"Authorization": f"Bearer {target.token}"}
    with httpx.Client(headers=headers, timeout=60, trust_env=False) as client:
        yield Api(target, client, VERSIONS[0])


@pytest.fixture(scope="module")
def reader(target: BreakableTarget) -> Iterator[Reader]:
    with Reader(settings_of(target, Policy())) as reader:
        yield reader


def test_the_load_manager_is_told(reader: Reader) -> None:
    told = reader.runtime_configuration()
    assert told["loadManagerClassName"] == SETTINGS["loadManagerClassName"]
    assert getattr(load_manager_of(told), "name", None) == EXTENSIBLE


def test_brokers_own_the_namespaces_in_which_they_watch_themselves(api: Api) -> None:
    """Each broker owns a heartbeat and an SLA monitor namespace, in some versions with the cluster's name.

    A broker that has just started takes them one after the other.
    """
    for at, broker in enumerate(api.ids):
        wait_until(partial(_watches_itself, api, at), f"{broker} owns both", 30, 0.5)


def _watches_itself(api: Api, at: int) -> bool:
    owned = api.get(f"/admin/v2/brokers/local/{api.ids[at]}/ownedNamespaces", at)
    namespaces = (each.rpartition("/")[0] for each in owned)
    watched = {each.replace("/local/", "/") for each in namespaces if re.match(HEARTBEAT, each)}
    return watched == {f"pulsar/{api.ids[at]}", f"sla-monitor/{api.ids[at]}"}


def test_there_is_no_load_report(api: Api) -> None:
    answer = api.call("GET", "/admin/v2/broker-stats/load-report")
    assert answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert "UnsupportedOperationException" in answer.text


def test_a_brokers_usage_is_in_its_metrics(api: Api, reader: Reader) -> None:
    manager = load_manager_of(reader.runtime_configuration() | {"loadBalancerSheddingEnabled": "true"})
    assert not hasattr(manager, "reason")
    seen: list[Sample] = []

    def told() -> bool:
        body = api.call("GET", "/metrics/").content
        samples = list(Exposition(iter([body]), len(body) + 1).samples(dict.fromkeys(SERIES)))
        seen[:] = samples
        triples = [(each.series, each.labels.get("feature", ""), each.value) for each in samples]
        return usage_of(api.ids[0], triples, manager) is not None

    wait_until(told, "a broker tells its usage", TOLD_WITHIN_S)
    labels = {each.series: set(each.labels) - {"feature"} for each in seen}
    assert labels[HISTORY] == {"cluster", "broker", "metric"}
    assert set(labels) == set(SERIES)


def test_a_bundle_is_handed_over(api: Api) -> None:
    namespace = api.new_namespace()
    owner = api.look_up(f"{namespace}/topic")
    bundle = api.bundle_of(f"{namespace}/topic")
    asked, destination = (at for at in range(len(api.ids)) if at != owner)
    answers = api.hops("PUT", f"{NAMESPACES}/{namespace}/{bundle}/unload", asked, params=api.to(destination))
    assert [answer.status_code for answer in answers] == [307, 204]
    location = httpx.URL(answers[0].headers["Location"])
    assert f"{location.host}:{location.port}" == api.ids[owner]
    assert location.params["destinationBroker"] == api.ids[destination]
    wait_until(
        lambda: api.owner(f"{namespace}/{bundle}") == destination, "the destination has heard of it", TOLD_WITHIN_S
    )
    assert api.look_up(f"{namespace}/topic") == destination


def test_a_bundle_is_not_handed_over_to_its_owner(api: Api) -> None:
    """The extensible load manager refuses to transfer a bundle to its present owner with status 500."""
    namespace = api.new_namespace()
    owner = api.look_up(f"{namespace}/topic")
    bundle = api.bundle_of(f"{namespace}/topic")
    answer = api.final("PUT", f"{NAMESPACES}/{namespace}/{bundle}/unload", params=api.to(owner))
    assert (answer.status_code, "cannot be transfer to same broker" in answer.text) == (500, True)
    assert api.owner(f"{namespace}/{bundle}") == owner


def test_a_destination_for_a_bundle_that_nobody_owns_is_forgotten(api: Api) -> None:
    namespace = api.new_namespace()
    bundle = api.bundle_of(f"{namespace}/topic")
    answer = api.final("PUT", f"{NAMESPACES}/{namespace}/{bundle}/unload", params=api.to(1))
    assert answer.status_code == httpx.codes.NO_CONTENT
    assert api.owner(f"{namespace}/{bundle}") is None
    told = api.final("GET", f"{NAMESPACES}/{namespace}/{bundle}/topicHashPositions")
    assert (told.status_code, "Failed to find ownership" in told.text) == (412, True)


def test_any_broker_looks_up(api: Api) -> None:
    namespace = api.new_namespace()
    owners = set()
    for at in range(len(api.ids)):
        (answer,) = api.hops("GET", f"/lookup/v2/topic/persistent/{namespace}/topic", at)
        assert answer.status_code == httpx.codes.OK
        owners.add(answer.json()["httpUrl"])
    assert len(owners) == 1
