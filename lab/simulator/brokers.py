"""``/admin/v2/brokers``, ``/clusters`` and ``/tenants``: who is there, who leads, what each owns, how it is configured."""

import re
from importlib import resources
from functools import cache
import json

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import replies
from lab.simulator.model import HEARTBEAT_RANGE
from lab.simulator.replies import Elsewhere, Refusal
from lab.simulator.routing import here


async def listed(request: Request) -> Response:
    """Every broker whose session lives; the cluster in the path is not looked at."""
    return replies.document([broker.id for broker in here(request).state.listed])


async def leader(request: Request) -> Response:
    """The leader, which assigns bundles."""
    broker = here(request).state.leader
    return replies.document({"serviceUrl": broker.web_url, "brokerId": broker.id})


async def health(_: Request) -> Response:
    """``ok``, after a real broker has written and read a message."""
    return replies.bare("ok")


async def version(request: Request) -> Response:
    """Pulsar's version."""
    return replies.bare(here(request).state.spec.version)


async def owned_namespaces(request: Request) -> Response:
    """The bundles of one broker and its two heartbeat namespaces; loads nothing."""
    me = here(request)
    asked = request.path_params["broker"]
    if asked not in {broker.id for broker in me.state.listed}:
        raise Refusal(404, f"Broker id '{asked}' not found in available brokers.")
    if asked != me.broker_id:
        raise Elsewhere(f"{me.state.brokers[asked].web_url}{request.url.path}")
    heartbeats = [f"{namespace}/{HEARTBEAT_RANGE}" for namespace in me.broker.heartbeat_namespaces]
    bundles = [*heartbeats, *me.state.owned_by(asked)]
    return replies.document({bundle: _assignment(request, bundle) for bundle in bundles})


def _assignment(request: Request, bundle: str) -> dict[str, object]:
    me = here(request)
    namespace = bundle.rpartition("/")[0]
    for policy in (me.state.isolation_policies or {}).values():
        if _matches(policy["namespaces"], namespace):
            kind = next((kind for kind in ("primary", "secondary") if _matches(policy[kind], me.broker.host)), "shared")
            return {"broker_assignment": kind, "is_controlled": True, "is_active": True}
    return {"broker_assignment": "shared", "is_controlled": False, "is_active": True}


async def runtime_configuration(request: Request) -> Response:
    """Every setting as a string."""
    state = here(request).state
    return replies.document({**default_configuration(), "clusterName": state.spec.cluster, **state.configuration})


@cache
def default_configuration() -> dict[str, str]:
    """What a 4.0.7 broker of the lab answered, without its addresses."""
    text = resources.files("lab.simulator").joinpath("configuration.json").read_text(encoding="utf-8")
    return {str(key): str(value) for key, value in json.loads(text).items()}


async def clusters(request: Request) -> Response:
    """The one cluster there is."""
    return replies.document([here(request).state.spec.cluster])


async def cluster(request: Request) -> Response:
    """The cluster's addresses."""
    _known_cluster(request, 404, "Cluster does not exist")
    first = next(iter(here(request).state.brokers.values()))
    return replies.document(
        {
            "serviceUrl": first.web_url,
            "brokerServiceUrl": first.service_url,
            "brokerClientTlsEnabled": False,
            "tlsAllowInsecureConnection": False,
            "brokerClientTlsEnabledWithKeyStore": False,
            "brokerClientTlsTrustStoreType": "JKS",
            "brokerClientTlsKeyStoreType": "JKS",
            "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
        }
    )


async def isolation_policies(request: Request) -> Response:
    """Every policy by its name: 404 until the first was ever set, ``{}`` after the last was deleted."""
    _known_cluster(request, 404, f"Cluster {request.path_params['cluster']} does not exist.")
    return replies.document(_isolation(request))


async def isolation_policy(request: Request) -> Response:
    """One policy: get, set, delete."""
    name, cluster_name = request.path_params["policy"], request.path_params["cluster"]
    _known_cluster(request, 404, f"Cluster {cluster_name} does not exist.")
    state = here(request).state
    if request.method == "POST":
        state.isolation_policies = {**(state.isolation_policies or {}), name: await request.json()}
        return replies.done()
    policies = _isolation(request)
    if request.method == "DELETE":
        state.isolation_policies = {key: value for key, value in policies.items() if key != name}
        return replies.done()
    if name not in policies:
        raise Refusal(404, f"Cannot find NamespaceIsolationPolicy {name} for cluster {cluster_name}")
    return replies.document(policies[name])


async def isolated_brokers(request: Request) -> Response:
    """Which policy holds each broker; without a policy, ``policyName`` is missing."""
    _known_cluster(request, 412, f"Cluster {request.path_params['cluster']} does not exist.")
    policies = _isolation(request)
    found = [_isolation_of(broker.id, broker.host, policies) for broker in here(request).state.listed]
    return replies.document(found)


def _isolation_of(broker_id: str, host: str, policies: dict[str, dict[str, object]]) -> dict[str, object]:
    for name, policy in policies.items():
        for kind in ("primary", "secondary"):
            if _matches(policy[kind], broker_id) or _matches(policy[kind], host):
                regex = policy["namespaces"]
                return {"brokerName": broker_id, "policyName": name, "namespaceRegex": regex, "primary": kind == "primary"}
    return {"brokerName": broker_id, "namespaceRegex": [], "primary": False}


def _matches(patterns: object, text: str) -> bool:
    return isinstance(patterns, list) and any(re.fullmatch(str(pattern), text) for pattern in patterns)


def _isolation(request: Request) -> dict[str, dict[str, object]]:
    policies = here(request).state.isolation_policies
    if policies is None:
        raise Refusal(404, f"NamespaceIsolationPolicies for cluster {request.path_params['cluster']} does not exist")
    return policies


def _known_cluster(request: Request, status: int, reason: str) -> None:
    if request.path_params["cluster"] != here(request).state.spec.cluster:
        raise Refusal(status, reason)


async def tenants(request: Request) -> Response:
    """Every tenant's name."""
    return replies.document(sorted({name.split("/")[0] for name in here(request).state.namespaces} | {"public"}))


async def tenant(request: Request) -> Response:
    """One tenant's document."""
    state = here(request).state
    if not any(name.startswith(f"{request.path_params['tenant']}/") for name in state.namespaces):
        raise Refusal(404, "Tenant does not exist")
    return replies.document({"adminRoles": [], "allowedClusters": [state.spec.cluster]})


ISOLATION = "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies"
ROUTES = [
    Route("/admin/v2/brokers", listed),
    Route("/admin/v2/brokers/leaderBroker", leader),
    Route("/admin/v2/brokers/health", health),
    Route("/admin/v2/brokers/ready", health),
    Route("/admin/v2/brokers/version", version),
    Route("/admin/v2/brokers/configuration/runtime", runtime_configuration),
    Route("/admin/v2/brokers/{cluster}", listed),
    Route("/admin/v2/brokers/{cluster}/{broker}/ownedNamespaces", owned_namespaces),
    Route("/admin/v2/clusters", clusters),
    Route("/admin/v2/clusters/{cluster}", cluster),
    Route(ISOLATION, isolation_policies),
    Route(f"{ISOLATION}/brokers", isolated_brokers),
    Route(f"{ISOLATION}/{{policy}}", isolation_policy, methods=["GET", "POST", "DELETE"]),
    Route("/admin/v2/tenants", tenants),
    Route("/admin/v2/tenants/{tenant}", tenant),
]
