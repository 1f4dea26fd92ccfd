"""``/admin/v2/namespaces``: names, the policies document, bounds; creation and deletion."""

import json

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import builder, ranges, replies
from lab.simulator.model import Namespace
from lab.simulator.replies import Refusal
from lab.simulator.routing import here, known_namespace, namespace_of
from lab.simulator.spec import NamespaceSpec

DEFAULT_BUNDLES = 4


async def names(request: Request) -> Response:
    """The namespaces of a tenant."""
    state, asked = here(request).state, request.path_params["tenant"]
    if asked not in state.tenants:
        raise Refusal(404, "Tenant not found")
    return replies.document(sorted(name for name in state.namespaces if name.split("/")[0] == asked))


async def namespace(request: Request) -> Response:
    """One namespace: all its policies in one document, creation, deletion."""
    match request.method:
        case "PUT":
            return await _create(request)
        case "DELETE":
            return _delete(request)
        case _:
            return replies.document(policies_document(known_namespace(request), here(request).state.spec.cluster))


async def _create(request: Request) -> Response:
    state, name = here(request).state, namespace_of(request)
    if request.path_params["tenant"] not in state.tenants:
        raise Refusal(404, "Tenant does not exist")
    if name in state.namespaces:
        raise Refusal(409, "Namespace already exists")
    body = await request.body()
    asked = json.loads(body) if body else {}
    bundles = asked.get("bundles", {}).get("numBundles", DEFAULT_BUNDLES)
    builder.add_namespace(state, NamespaceSpec(name, bundles=bundles))
    return replies.done()


def _delete(request: Request) -> Response:
    state, name = here(request).state, namespace_of(request)
    found = known_namespace(request, f"Namespace {name} does not exist.")
    if state.topics[name].by_name:
        raise Refusal(409, "Cannot delete non empty namespace")
    for bundle in ranges.bundles_of(found.boundaries):
        state.unload(f"{name}/{bundle}")
    del state.namespaces[name], state.topics[name]
    return replies.done()


async def bundles(request: Request) -> Response:
    """The bounds of a namespace's bundles, owned or not."""
    return replies.document(_bounds(known_namespace(request)))


def _bounds(of: Namespace) -> dict[str, object]:
    return {"boundaries": [ranges.hexed(bound) for bound in of.boundaries], "numBundles": len(of.boundaries) - 1}


def policies_document(of: Namespace, cluster: str) -> dict[str, object]:
    """All policies of a namespace: those that are always there, and those that were set; no other is in it."""
    return {
        "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
        "replication_clusters": [cluster],
        "allowed_clusters": [],
        "bundles": _bounds(of),
        "backlog_quota_map": {},
        "clusterDispatchRate": {},
        "topicDispatchRate": {},
        "subscriptionDispatchRate": {},
        "replicatorDispatchRate": {},
        "clusterSubscribeRate": {},
        "publishMaxMessageRate": {},
        "latency_stats_sample_rate": {},
        "deleted": False,
        "encryption_required": False,
        "subscription_auth_mode": "None",
        "offload_threshold": -1,
        "offload_threshold_in_seconds": -1,
        "schema_compatibility_strategy": "UNDEFINED",
        "is_allow_auto_update_schema": True,
        "schema_validation_enforced": False,
        "subscription_types_enabled": [],
        "properties": {},
        "migrated": False,
        **of.policies,
    }


async def anti_affinity_group(request: Request) -> Response:
    """The anti-affinity group of a namespace: its name as it was sent, quotes included, or nothing; set, delete."""
    state, name = here(request).state, known_namespace(request, "Namespace local-policies does not exist").name
    match request.method:
        case "POST":
            state.anti_affinity_groups[name] = (await request.body()).decode()
            return replies.done()
        case "DELETE":
            state.anti_affinity_groups.pop(name, None)
            return replies.done()
    group = state.anti_affinity_groups.get(name)
    return replies.done() if group is None else replies.bare(group)


async def scalable_topics(request: Request) -> Response:
    """The scalable topics of a namespace; there is no such call before 5.0."""
    me = here(request)
    if me.state.spec.version_of(me.broker.number) < "5":
        return replies.jetty_page(request, 404, "Not Found")
    name = known_namespace(request, "Namespace does not exist").name
    return replies.document(list(next((each.scalable for each in me.state.spec.namespaces if each.name == name), ())))


async def bookie_affinity(request: Request) -> Response:
    """The group of bookies that a namespace's ledgers keep to, or nothing."""
    state, name = here(request).state, known_namespace(request, "Namespace local-policies does not exist").name
    if name not in state.bookie_groups:
        return replies.done()
    groups = {"bookkeeperAffinityGroupPrimary": state.bookie_groups[name], "bookkeeperAffinityGroupSecondary": None}
    return replies.document(groups)


ROUTES = [
    Route("/admin/v2/namespaces/{tenant}/{namespace}/persistence/bookieAffinity", bookie_affinity),
    Route(
        "/admin/v2/namespaces/{tenant}/{namespace}/antiAffinity", anti_affinity_group, methods=["GET", "POST", "DELETE"]
    ),
    Route("/admin/v2/scalable/{tenant}/{namespace}", scalable_topics),
    Route("/admin/v2/namespaces/{tenant}", names),
    Route("/admin/v2/namespaces/{tenant}/{namespace}", namespace, methods=["GET", "PUT", "DELETE"]),
    Route("/admin/v2/namespaces/{tenant}/{namespace}/bundles", bundles),
]
