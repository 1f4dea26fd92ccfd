"""Namespace isolation policies: what setting and deleting one unloads, by its scope, and what brokers tell of it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from pulsar_steward.model.isolation import Failover, FailoverLimits, IsolationPolicy, isolation_policies
from pulsar_steward.pulsar.calls import Call, delete_isolation, set_isolation
from pulsar_steward.pulsar.reader import Reader
from tests.contract.api import Api

ISOLATION = "/admin/v2/clusters/local/namespaceIsolationPolicies"
DONE = httpx.codes.NO_CONTENT
FAILOVER = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}


def sent(api: Api, call: Call) -> httpx.Response:
    return api.final(call.method, call.path, json=call.body)


def scoped(namespaces: list[str], scope: str | None, primary: str = "127.*") -> dict[str, Any]:
    """A policy whose brokers are all that there are, as pulsar-admin sends it."""
    policy = {"namespaces": namespaces, "primary": [primary], "secondary": [], "auto_failover_policy": FAILOVER}
    return policy | ({} if scope is None else {"unload_scope": scope})


@pytest.fixture
def bundle(api: Api, namespace: str) -> str:
    """A bundle of the test's namespace that a broker owns."""
    api.look_up(f"{namespace}/topic")
    return f"{namespace}/{api.bundle_of(f'{namespace}/topic')}"


@pytest.fixture
def group(api: Api) -> Iterator[str]:
    """The path of a policy; one that stays would keep its brokers from every other namespace."""
    yield f"{ISOLATION}/group"
    sent(api, delete_isolation("local", "group"))


def test_isolation_policies_are_missing_then_empty(api: Api, namespace: str, bundle: str, group: str) -> None:
    """Isolation policies are answered with 404 before the first was set, and with `{}` after the last was deleted."""
    never = api.call("GET", ISOLATION)
    assert (never.status_code, never.json()["reason"]) == (
        404,
        "NamespaceIsolationPolicies for cluster local does not exist",
    )
    policy = scoped([namespace], None)
    assert api.call("POST", group, json=policy).status_code == DONE
    assert api.get(ISOLATION) == {"group": policy}
    assert api.get(group) == policy
    held = {"policyName": "group", "namespaceRegex": [namespace], "primary": True}
    expected = [{"brokerName": broker_id, **held} for broker_id in sorted(api.ids)]
    assert sorted(api.get(f"{ISOLATION}/brokers"), key=lambda broker: str(broker["brokerName"])) == expected
    assert api.owner(bundle) is None, "setting a policy unloads the namespaces that it matches"
    assert sent(api, delete_isolation("local", "group")).status_code == DONE
    assert api.get(ISOLATION) == {}
    assert api.call("GET", group).status_code == 404


def test_what_steward_sets_unloads_nothing_and_is_what_it_reads(
    api: Api, reader: Reader, namespace: str, bundle: str, group: str
) -> None:
    """A policy of the scope `none` leaves every bundle where it is, when it is set, changed and deleted."""
    owner = api.owner(bundle)
    for primary in ("127.*", ".*"):
        policy = IsolationPolicy((namespace, "acme/.*"), (primary,), (), Failover(FailoverLimits("1", "80")))
        assert sent(api, set_isolation("local", "group", policy)).status_code == DONE
        assert isolation_policies(reader.isolation_policies("local")) == {"group": policy}
        assert api.get(group)["unload_scope"] == "none"
        assert api.owner(bundle) == owner is not None
    assert sent(api, delete_isolation("local", "group")).status_code == DONE
    assert reader.isolation_policies("local") == {}
    assert api.owner(bundle) == owner


def test_a_deletion_unloads_nothing(api: Api, namespace: str, group: str) -> None:
    """Whether brokers know a scope or not: Steward deletes policies on every version."""
    assert api.call("POST", group, json=scoped([namespace], "none")).status_code == DONE
    api.look_up(f"{namespace}/topic")
    bundle = f"{namespace}/{api.bundle_of(f'{namespace}/topic')}"
    owner = api.owner(bundle)
    assert sent(api, delete_isolation("local", "group")).status_code == DONE
    assert api.owner(bundle) == owner is not None


def test_a_policy_that_is_not_there_is_deleted_all_the_same(api: Api) -> None:
    assert sent(api, delete_isolation("local", "never-set")).status_code == DONE


@pytest.mark.parametrize(
    ("scope", "primary", "stays"),
    [("changed", "127.*", True), (None, "127.*", True), ("all_matching", "127.*", False), (None, ".*", False)],
    ids=["what changed", "no scope", "all that match", "other brokers"],
)
def test_setting_a_policy_anew_unloads_by_its_scope(
    api: Api, namespace: str, group: str, scope: str | None, primary: str, stays: bool
) -> None:
    """Set anew as it is, a policy unloads nothing unless it says so; with other brokers it unloads all that match."""
    assert api.call("POST", group, json=scoped([namespace], "none")).status_code == DONE
    api.look_up(f"{namespace}/topic")
    bundle = f"{namespace}/{api.bundle_of(f'{namespace}/topic')}"
    assert api.call("POST", group, json=scoped([namespace], scope, primary)).status_code == DONE
    assert (api.owner(bundle) is not None) is stays


@pytest.mark.parametrize("left_out", ["namespaces", "primary", "secondary", "auto_failover_policy"])
def test_half_a_policy_is_refused(api: Api, namespace: str, group: str, left_out: str) -> None:
    """A policy without one of its parts is refused with 400."""
    half = {name: part for name, part in scoped([namespace], "none").items() if name != left_out}
    answer = api.call("POST", group, json=half)
    assert (answer.status_code, "Invalid format of input policy data" in answer.text) == (400, True)


def test_policies_of_another_cluster_are_refused(api: Api, namespace: str) -> None:
    """A policy for a cluster that the brokers do not know is refused with 412, as is its deletion."""
    policy = IsolationPolicy((namespace,), ("127.*",), (), Failover(FailoverLimits(1, 80)))
    for call in (set_isolation("prod", "group", policy), delete_isolation("prod", "group")):
        answer = sent(api, call)
        assert (answer.status_code, answer.json()["reason"]) == (412, "Cluster prod does not exist.")
