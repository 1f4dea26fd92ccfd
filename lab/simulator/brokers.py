"""``/admin/v2/brokers``, ``/clusters``, ``/tenants``: who is there, who leads, what each owns, how it is configured."""

import json
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import isolation, replies
from lab.simulator.replies import Elsewhere, Refusal
from lab.simulator.routing import here, path_as_sent
from lab.simulator.state import ClusterState


async def listed(request: Request) -> Response:
    """Every broker whose session lives; the cluster in the path is not looked at."""
    return replies.document([broker.broker_id for broker in here(request).state.listed])


async def leader(request: Request) -> Response:
    """The leader, which assigns bundles."""
    broker = here(request).state.leader
    return replies.document({"serviceUrl": broker.admin_url, "brokerId": broker.broker_id})


async def health(_: Request) -> Response:
    """``ok``, after a real broker has written and read a message."""
    return replies.bare("ok")


async def version(request: Request) -> Response:
    """Pulsar's version."""
    me = here(request)
    return replies.bare(me.state.spec.version_of(me.broker.number))


async def owned_namespaces(request: Request) -> Response:
    """The bundles of one broker and those in which it watches itself; loads nothing."""
    me = here(request)
    asked = request.path_params["broker"]
    if asked not in {broker.broker_id for broker in me.state.listed}:
        raise Refusal(404, f"Broker id '{asked}' not found in available brokers.")
    if asked != me.broker_id:
        raise Elsewhere(f"{me.state.brokers[asked].admin_url}{path_as_sent(request)}")
    bundles = [*me.state.watched_by(asked), *me.state.owned_by(asked)]
    return replies.document({bundle: _assignment(request, bundle) for bundle in bundles})


def _assignment(request: Request, bundle: str) -> dict[str, object]:
    me = here(request)
    policy = isolation.policy_of(bundle.rpartition("/")[0], me.state.isolation_policies)
    if policy is not None:
        return {"broker_assignment": isolation.role(me.broker, policy), "is_controlled": True, "is_active": True}
    return {"broker_assignment": "shared", "is_controlled": False, "is_active": True}


async def runtime_configuration(request: Request) -> Response:
    """Every setting as a string."""
    me = here(request)
    return replies.document(configuration_of(me.state, me.broker.number))


def configuration_of(state: ClusterState, number: int) -> dict[str, str]:
    """All settings of the broker with a number."""
    return {
        **default_configuration(),
        **(EXTENSIBLE if state.spec.is_extensible else {}),
        "clusterName": state.spec.cluster,
        "metadataStoreUrl": f"zk:{state.spec.cluster}-metadata:2181",
        **state.configuration,
        **state.spec.own_settings_of(number),
    }


EXTENSIBLE = {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"}


@cache
def default_configuration() -> dict[str, str]:
    """Runtime configuration that a 4.0.7 broker of the lab returned, without its addresses."""
    text = resources.files("lab.simulator").joinpath("configuration.json").read_text(encoding="utf-8")
    return {str(key): str(value) for key, value in json.loads(text).items()}


async def clusters(request: Request) -> Response:
    """The cluster, and the others of its configuration store."""
    spec = here(request).state.spec
    return replies.document([spec.cluster, *spec.others])


async def cluster(request: Request) -> Response:
    """The cluster's addresses."""
    name, spec = request.path_params["cluster"], here(request).state.spec
    if name in spec.others:
        return replies.document({"serviceUrl": f"http://{name}:8080", "brokerServiceUrl": f"pulsar://{name}:6650"})
    if name != spec.cluster:
        raise Refusal(404, "Cluster does not exist")
    first = next(iter(here(request).state.brokers.values()))
    return replies.document(
        {
            "serviceUrl": first.admin_url,
            "brokerServiceUrl": first.service_url,
            "brokerClientTlsEnabled": False,
            "tlsAllowInsecureConnection": False,
            "brokerClientTlsEnabledWithKeyStore": False,
            "brokerClientTlsTrustStoreType": "JKS",
            "brokerClientTlsKeyStoreType": "JKS",
            "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
        }
    )


async def tenants(request: Request) -> Response:
    """Every tenant's name."""
    return replies.document(sorted(here(request).state.tenants))


async def tenant(request: Request) -> Response:
    """One tenant: its document, and its creation."""
    state, name = here(request).state, request.path_params["tenant"]
    if request.method == "PUT":
        asked = set(json.loads(await request.body() or b"{}").get("allowedClusters") or ())
        if not asked:
            raise Refusal(412, "Clusters cannot be empty or blank")
        if asked - {state.spec.cluster, *state.spec.others}:
            raise Refusal(412, "Clusters do not exist")
        if name in state.tenants:
            raise Refusal(409, "Tenant already exist")
        state.tenants.add(name)
        return replies.done()
    if name not in state.tenants:
        raise Refusal(404, "Tenant does not exist")
    return replies.document({"adminRoles": [], "allowedClusters": [state.spec.cluster, *state.spec.others]})


async def migration(request: Request) -> Response:
    """Pulsar's own migration of the cluster; 404 where nobody ever set anything."""
    spec = here(request).state.spec
    if not spec.migrates_to:
        raise Refusal(404, "Cluster does not exist")
    return replies.document({"migrated": False, "migratedClusterUrl": {"brokerServiceUrl": spec.migrates_to}})


async def bookies(request: Request) -> Response:
    """Every bookie that belongs to the cluster, whether it is up or not."""
    count = here(request).state.spec.bookies
    return replies.document({"bookies": [{"bookieId": _bookie(number)} for number in range(count)]})


async def bookie_groups(request: Request) -> Response:
    """The bookies of each group, with their racks."""
    groups = here(request).state.spec.bookie_groups
    rack = {"rack": "/default-rack", "hostname": None}
    return replies.document({name: {_bookie(number): rack for number in group} for name, group in groups.items()})


def _bookie(number: int) -> str:
    return f"bookie-{number}:3181"


ROUTES = [
    Route("/admin/v2/brokers", listed),
    Route("/admin/v2/brokers/leaderBroker", leader),
    Route("/admin/v2/brokers/health", health),
    Route("/admin/v2/brokers/ready", health),
    Route("/admin/v2/brokers/version", version),
    Route("/admin/v2/brokers/configuration/runtime", runtime_configuration),
    Route("/admin/v2/brokers/{cluster}", listed),
    Route("/admin/v2/brokers/{cluster}/{broker}/ownedNamespaces", owned_namespaces),
    Route("/admin/v2/bookies/all", bookies),
    Route("/admin/v2/bookies/racks-info", bookie_groups),
    Route("/admin/v2/clusters", clusters),
    Route("/admin/v2/clusters/{cluster}", cluster),
    Route("/admin/v2/clusters/{cluster}/migrate", migration),
    Route("/admin/v2/tenants", tenants),
    Route("/admin/v2/tenants/{tenant}", tenant, methods=["GET", "PUT"]),
]
