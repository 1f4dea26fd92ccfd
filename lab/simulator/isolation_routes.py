"""``namespaceIsolationPolicies`` of the cluster: get, set, delete, and who is held by which."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import isolation, ranges, replies
from lab.simulator.isolation import Policies
from lab.simulator.model import Broker
from lab.simulator.replies import Refusal
from lab.simulator.routing import here
from lab.simulator.state import ClusterState


async def isolation_policies(request: Request) -> Response:
    """Every policy by its name: 404 until the first was ever set, ``{}`` after the last was deleted."""
    _known_cluster(request, 404, f"Cluster {request.path_params['cluster']} does not exist.")
    return replies.document(_isolation(request))


async def isolation_policy(request: Request) -> Response:
    """One policy: get, set, delete."""
    name, cluster_name = request.path_params["policy"], request.path_params["cluster"]
    _known_cluster(request, 412, f"Cluster {cluster_name} does not exist.")
    state = here(request).state
    if request.method == "POST":
        _set(state, name, await request.json())
        return replies.done()
    policies = _isolation(request)
    if request.method == "DELETE":
        state.isolation_policies = {key: value for key, value in policies.items() if key != name}
        return replies.done()
    if name not in policies:
        raise Refusal(404, f"Cannot find NamespaceIsolationPolicy {name} for cluster {cluster_name}")
    return replies.document(policies[name])


async def isolated_brokers(request: Request) -> Response:
    """Brokers with the policy that each is in; without one, ``policyName`` is missing."""
    _known_cluster(request, 412, f"Cluster {request.path_params['cluster']} does not exist.")
    policies = _isolation(request)
    found = [_isolation_of(broker, policies) for broker in here(request).state.listed]
    return replies.document(found)


def _isolation_of(broker: Broker, policies: Policies) -> dict[str, object]:
    for name, policy in policies.items():
        kind = isolation.role(broker, policy)
        if kind != "shared":
            held = {"policyName": name, "namespaceRegex": policy["namespaces"], "primary": kind == "primary"}
            return {"brokerName": broker.broker_id, **held}
    return {"brokerName": broker.broker_id, "namespaceRegex": [], "primary": False}


def _set(state: ClusterState, name: str, policy: dict[str, Any]) -> None:
    """Keeps a policy, with its scope, and unloads what the scope says.

    Raises:
        Refusal: 400, a part is missing.
    """
    failover = policy.get("auto_failover_policy", {}).get("parameters", {})
    whole = policy.get("namespaces") and policy.get("primary") and "secondary" in policy
    if not whole or not {"min_limit", "usage_threshold"} <= set(failover):
        raise Refusal(400, f"Invalid format of input policy data. policy: {name}; data: {json.dumps(policy)}")
    known = state.isolation_policies or {}
    state.isolation_policies = {**known, name: policy}
    patterns = isolation.unloading(policy, known.get(name))
    for namespace in state.namespaces.values():
        if isolation.matches(patterns, namespace.name):
            for bundle in ranges.bundles_of(namespace.boundaries):
                state.unload(f"{namespace.name}/{bundle}")


def _isolation(request: Request) -> Policies:
    policies = here(request).state.isolation_policies
    if policies is None:
        raise Refusal(404, f"NamespaceIsolationPolicies for cluster {request.path_params['cluster']} does not exist")
    return policies


def _known_cluster(request: Request, status: int, reason: str) -> None:
    if request.path_params["cluster"] != here(request).state.spec.cluster:
        raise Refusal(status, reason)


PATH = "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies"
ROUTES = [
    Route(PATH, isolation_policies),
    Route(f"{PATH}/brokers", isolated_brokers),
    Route(f"{PATH}/{{policy}}", isolation_policy, methods=["GET", "POST", "DELETE"]),
]
