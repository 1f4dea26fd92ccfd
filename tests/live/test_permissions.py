"""Roles of `docs/permissions.md`, by endpoint, held against real brokers with their own authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from lab.faults.real.ground import COMMON_SETTINGS
from lab.model import CLUSTER
from lab.tokens import SUPERUSER
from pulsar_steward.model.isolation import Failover, FailoverLimits, IsolationPolicy
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    Persistence,
    QuotaPolicy,
    Retention,
    SettingName,
    TimeToLive,
)
from pulsar_steward.pulsar import calls
from tests.contract.api import Api
from tests.live.reached import Checkup, said_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.pulsar.calls import Call

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/attacks/test_connections.py",
        "tests/deploy/test_read_only_gateway.py",
        "tests/unit/cli/test_doctor_rights.py",
    ),
]

NOBODY, STRANGER, CLIENT, ADMIN, LOOKS = "nobody", "stranger", "shop-client", "shop-admin", "steward-look"
ROLES = (NOBODY, STRANGER, CLIENT, ADMIN, LOOKS)
"""Without a token; with one; who may produce and consume; the tenant's admin; a superuser. Each may do more."""

TENANT = "shop"
NAMESPACE, CHANGED, ELSEWHERE = f"{TENANT}/orders", f"{TENANT}/changed", "public/elsewhere"
NAME = f"{NAMESPACE}/topic"
TOPIC = f"/admin/v2/persistent/{NAME}"
PARTITIONED = f"persistent://{NAMESPACE}/partitioned"
FIRST, SECOND = "0x00000000_0x40000000", "0x40000000_0x80000000"
"""Bundles of `CHANGED`: one to be unloaded, one to be split."""

TOPIC_POLICIES = (
    "backlogQuotaMap",
    "retention",
    "messageTTL",
    "delayedDelivery",
    "persistence",
    "compactionThreshold",
    "publishRate",
    "dispatchRate",
    "subscriptionDispatchRate",
)
LOOKS_AT = {
    "/admin/v2/brokers": LOOKS,
    "/admin/v2/brokers/leaderBroker": LOOKS,
    f"/admin/v2/brokers/{CLUSTER}/{{broker}}/ownedNamespaces": LOOKS,
    "/admin/v2/brokers/configuration/runtime": LOOKS,
    "/admin/v2/broker-stats/topics": LOOKS,
    "/admin/v2/broker-stats/load-report": LOOKS,
    "/admin/v2/bookies/all": LOOKS,
    "/admin/v2/bookies/racks-info": LOOKS,
    f"/admin/v2/namespaces/{NAMESPACE}/persistence/bookieAffinity": LOOKS,
    "/admin/v2/tenants": LOOKS,
    f"/admin/v2/clusters/{CLUSTER}": LOOKS,
    f"/admin/v2/clusters/{CLUSTER}/migrate": LOOKS,
    f"/admin/v2/tenants/{TENANT}": ADMIN,
    f"/admin/v2/persistent/{NAMESPACE}/partitioned": CLIENT,
    "/admin/v2/clusters": STRANGER,
    f"/admin/v2/clusters/{CLUSTER}/namespaceIsolationPolicies": LOOKS,
    f"/admin/v2/namespaces/{TENANT}": ADMIN,
    f"/admin/v2/namespaces/{NAMESPACE}": ADMIN,
    f"/admin/v2/namespaces/{NAMESPACE}/{{bundle}}/topicHashPositions": ADMIN,
    f"/admin/v2/namespaces/{NAMESPACE}/antiAffinity": ADMIN,
    f"/admin/v2/namespaces/{NAMESPACE}/bundles": CLIENT,
    f"{TOPIC}/partitions": CLIENT,
    f"{TOPIC}/stats": CLIENT,
    f"{TOPIC}/internalStats": CLIENT,
    f"{TOPIC}/internal-info": CLIENT,
    f"/admin/v2/persistent/{NAMESPACE}": CLIENT,
    **{f"{TOPIC}/{policy}": ADMIN for policy in TOPIC_POLICIES},
    "/admin/v2/brokers/version": STRANGER,
    "/admin/v3/transactions/coordinatorStats?coordinatorId=0": STRANGER,
    "/metrics/": NOBODY,
}
"""The least of `ROLES` that may read each path of the first table."""

SETTINGS: Mapping[SettingName, Setting] = {
    SettingName.SIZE_QUOTA: BacklogQuota(limit_bytes=1 << 30, policy=QuotaPolicy.HOLD),
    SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=3600, policy=QuotaPolicy.HOLD),
    SettingName.RETENTION: Retention(minutes=60, megabytes=1 << 12),
    SettingName.TTL: TimeToLive(seconds=3600),
    SettingName.DELAYED_DELIVERY: DelayedDelivery(active=True, tick_milliseconds=1000),
    SettingName.PERSISTENCE: Persistence.of((1, 1, 1), 1.0),
}


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """Two brokers, set as the document says: the role that looks is a superuser of its own."""
    superusers = {"superUserRoles": f"{SUPERUSER},{LOOKS}"}
    return labs.lab(brokers=2, auth="token", broker_settings={**dict(COMMON_SETTINGS), **superusers})


@pytest.fixture(scope="module")
def as_role(lab: Lab) -> Iterator[dict[str, Api]]:
    """Raw calls as each role, once there is what they ask about."""
    tokens = {role: lab.role_token(role) for role in ROLES if role != NOBODY}
    headers = {role: {"Authorization": f"Bearer {tokens[role]}"} if role in tokens else {} for role in ROLES}
    clients = {role: httpx.Client(headers=headers[role], timeout=30, trust_env=False) for role in ROLES}
    made = {role: Api(lab, client, lab.state.spec.pulsar_version) for role, client in clients.items()}
    tenant = {"adminRoles": [ADMIN], "allowedClusters": [CLUSTER]}
    namespaces = [NAMESPACE, CHANGED, ELSEWHERE]
    steps = [
        ("PUT", f"/admin/v2/tenants/{TENANT}", tenant),
        *(("PUT", f"/admin/v2/namespaces/{each}", {"bundles": {"numBundles": 4}}) for each in namespaces),
        ("POST", f"/admin/v2/namespaces/{NAMESPACE}/permissions/{CLIENT}", ["produce", "consume"]),
        ("PUT", TOPIC, None),
    ]
    for method, path, body in steps:
        made[LOOKS].final(method, path, json=body).raise_for_status()
    made[LOOKS].look_up(NAME)
    yield made
    for client in clients.values():
        client.close()


def sent(api: Api, call: Call, at: int = 0) -> httpx.Response:
    """The answer to a call that Steward would send."""
    return api.final(call.method, call.path, at, params=call.query, json=call.body)


def refused(answer: httpx.Response) -> bool:
    """Whether the role may not: 401 to whoever does not say who it is, 403 to everybody else."""
    return answer.status_code in {401, 403}


def assert_least(as_role: dict[str, Api], call: Call, least: str) -> None:
    """Asserts that a call is refused to all roles that may do less than this one, and has its effect for it."""
    *lesser, answer = (sent(as_role[role], call) for role in ROLES[: ROLES.index(least) + 1])
    assert all(refused(each) for each in lesser), [each.status_code for each in lesser]
    assert answer.is_success, answer.text


@pytest.mark.parametrize("path", LOOKS_AT)
def test_who_may_look(as_role: dict[str, Api], path: str) -> None:
    looks = as_role[LOOKS]
    asked = path.format(broker=looks.ids[0], bundle=looks.bundle_of(NAME) if "{bundle}" in path else "")
    answers = {role: as_role[role].final("GET", asked) for role in ROLES}
    least = ROLES.index(LOOKS_AT[path])
    assert [role for role in ROLES if refused(answers[role])] == list(ROLES[:least])
    # 404: no isolation policies, or a coordinator that no client uses.
    assert {answers[role].status_code for role in ROLES[least:]} <= {200, 204, 404}


@pytest.mark.usefixtures("as_role")
def test_a_checkup_by_the_role_that_looks(lab: Lab, tmp_path: Path) -> None:
    outcomes = {}
    for role in (LOOKS, ADMIN):
        folder = tmp_path / role
        folder.mkdir()
        (folder / "token").write_text(lab.role_token(role), encoding="utf-8")
        outcomes[role] = Checkup(folder, "--admin-url", lab.admin_urls[0], "--token-file", "token")
    outcomes[LOOKS].assert_complete(2)
    assert outcomes[ADMIN].ended.returncode == 2, said_by(outcomes[ADMIN].ended)
    assert "its role has to be a superuser's" in outcomes[ADMIN].ended.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    "call", [calls.unload(CHANGED, FIRST, "{broker}"), calls.split(CHANGED, SECOND, "range_equally_divide")], ids=str
)
def test_bundles_are_a_superusers(as_role: dict[str, Api], call: Call) -> None:
    query = {name: value.format(broker=as_role[LOOKS].ids[1]) for name, value in call.query.items()}
    answers = [as_role[role].final(call.method, call.path, params=query) for role in ROLES]
    assert [refused(answer) for answer in answers] == [True, True, True, True, False]
    assert answers[-1].status_code == httpx.codes.NO_CONTENT, answers[-1].text


def test_the_number_of_coordinators_is_a_superusers(as_role: dict[str, Api]) -> None:
    partitions = "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions"
    now = as_role[LOOKS].get(partitions)["partitions"]
    answers = [sent(as_role[role], calls.raise_coordinators(now)) for role in ROLES]
    assert [refused(answer) for answer in answers] == [True, True, True, True, False]
    assert answers[-1].status_code == httpx.codes.NOT_ACCEPTABLE, answers[-1].text


def test_isolation_policies_are_a_superusers(as_role: dict[str, Api]) -> None:
    policy = IsolationPolicy(("shop/none",), ("127.*",), (), Failover(FailoverLimits("1", "80")))
    for call in (calls.set_isolation(CLUSTER, "tried", policy), calls.delete_isolation(CLUSTER, "tried")):
        assert_least(as_role, call, LOOKS)


def test_a_lookup_is_for_clients(as_role: dict[str, Api]) -> None:
    """A lookup is permitted to clients that may produce or consume, to the tenant's admin and to a superuser."""
    answers = [sent(as_role[role], calls.look_up(f"persistent://{NAME}")) for role in ROLES]
    assert [refused(answer) for answer in answers] == [True, True, False, False, False]


@pytest.mark.parametrize("name", SettingName, ids=str)
@pytest.mark.parametrize("holder", [NAMESPACE, f"persistent://{NAME}"])
def test_a_tenants_admin_changes_its_settings_but_for_delays(
    as_role: dict[str, Api], holder: str, name: SettingName
) -> None:
    least = LOOKS if (holder, name) == (NAMESPACE, SettingName.DELAYED_DELIVERY) else ADMIN
    for value in (SETTINGS[name], None):
        assert_least(as_role, calls.set_to(holder, name, value), least)


def test_a_tenants_admin_adds_partitions(as_role: dict[str, Api]) -> None:
    call = calls.add_partitions(PARTITIONED, 2)
    as_role[LOOKS].final("PUT", call.path, json=1).raise_for_status()
    assert_least(as_role, call, ADMIN)
    assert as_role[LOOKS].get(call.path)["partitions"] == call.body


def test_who_may_consume_deletes_a_subscription(as_role: dict[str, Api]) -> None:
    """Deleting a subscription is permitted to clients that may consume, to the tenant's admin and to a superuser."""
    call = calls.delete_subscription(f"persistent://{NAME}", "audit")
    made = as_role[LOOKS].final("PUT", call.path, json={"ledgerId": -1, "entryId": -1, "partitionIndex": -1})
    assert made.is_success, made.text
    answers = [sent(as_role[role], call) for role in ROLES]
    assert [refused(answer) for answer in answers] == [True, True, False, False, False]
    assert [answer.status_code for answer in answers[2:]] == [204, 404, 404]


@pytest.mark.parametrize("name", SettingName, ids=str)
def test_a_tenants_admin_changes_nothing_elsewhere(as_role: dict[str, Api], name: SettingName) -> None:
    before = as_role[LOOKS].get(f"/admin/v2/namespaces/{ELSEWHERE}")
    answer = sent(as_role[ADMIN], calls.set_to(ELSEWHERE, name, SETTINGS[name]))
    assert refused(answer)
    assert as_role[LOOKS].get(f"/admin/v2/namespaces/{ELSEWHERE}") == before
