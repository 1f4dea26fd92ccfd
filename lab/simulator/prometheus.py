"""``/metrics/``: the Prometheus text of one broker."""

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lab.simulator.brokers import configuration_of
from lab.simulator.metrics import broker, ledgers, process, transactions
from lab.simulator.metrics import topics as of_topics
from lab.simulator.metrics.broker import Totals
from lab.simulator.metrics.topics import Shown
from lab.simulator.routing import Here, here
from lab.simulator.spec import CoordinatorSpec
from lab.simulator.state import tc_topics

NO_LIMITS = (-1, -1)
TRACKER = "delayedDeliveryTrackerFactoryClassName"
TOPICS_TOO = "exposeTopicLevelMetricsInPrometheus"
CLIENT_TOO = "bookkeeperClientExposeStatsToPrometheus"


async def to_metrics(request: Request) -> Response:
    """Without the slash at its end the address redirects."""
    return RedirectResponse(f"{here(request).broker.admin_url}/metrics/", status_code=302)


async def metrics(request: Request) -> Response:
    """The Prometheus text format 0.0.4."""
    me = here(request)
    text = me.kept("metrics", lambda: "".join(_lines(me)).encode())
    return Response(text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _lines(me: Here) -> Iterator[str]:
    spec, configuration = me.state.spec, configuration_of(me.state, me.broker.number)
    load, by_namespace = spec.load_of(me.broker.number), _shown(me)
    shown = [topic for topics in by_namespace.values() for topic in topics]
    yield from process.lines({"cluster": spec.cluster}, load, me.broker.started_ms / 1000)
    yield from broker.lines(spec.cluster, me.broker.host, load, _totals(shown), extensible=spec.is_extensible)
    rates = {namespace: sum(topic.spec.rate_in for topic in topics) for namespace, topics in by_namespace.items()}
    yield from ledgers.lines(spec.cluster, load, rates)
    yield from transactions.lines(spec.cluster, _used_coordinators(me))
    yield from of_topics.counts(spec.cluster, {namespace: len(topics) for namespace, topics in by_namespace.items()})
    if configuration[TOPICS_TOO] == "true":
        yield from of_topics.lines(shown, buckets="Bucket" in configuration[TRACKER])
    if configuration[CLIENT_TOO] == "true":
        yield from ledgers.client_threads(spec.cluster, load)


def _used_coordinators(me: Here) -> dict[int, CoordinatorSpec]:
    """The coordinators that clients use and whose bundles the broker owns."""
    topics = tc_topics(me.state.spec.coordinators)
    owners = {number: me.state.owner(me.state.bundle_of(topics[number])) for number in me.state.spec.transactions}
    return {number: me.state.spec.transactions[number] for number, owner in owners.items() if owner == me.broker}


def _shown(me: Here) -> dict[str, list[Shown]]:
    """The loaded topics by namespace, the broker's own first."""
    cluster, beat = me.state.spec.cluster, me.heartbeat
    found = {me.broker.heartbeat_namespaces[1]: [(beat, NO_LIMITS)]}
    for namespace, bundles in me.loaded().items():
        held = [topic for topics in bundles.values() for topic in topics]
        found[namespace] = [(topic, me.state.limits(topic.name)) for topic in held]
    return {
        namespace: [
            Shown(f'cluster="{cluster}",namespace="{namespace}",topic="{topic.name}"', topic.spec, limits)
            for topic, limits in topics
        ]
        for namespace, topics in found.items()
    }


def _totals(shown: list[Shown]) -> Totals:
    specs = [topic.spec for topic in shown]
    return Totals(
        topics=len(specs),
        producers=sum(spec.producers for spec in specs),
        consumers=sum(spec.consumers for spec in specs),
        rate_in=sum(spec.rate_in for spec in specs),
        rate_out=sum(each.rate_out for spec in specs for each in spec.subscriptions),
        bytes_in=sum(spec.rate_in * spec.message_bytes for spec in specs),
        bytes_out=sum(each.rate_out * spec.message_bytes for spec in specs for each in spec.subscriptions),
    )


ROUTES = [Route("/metrics", to_metrics), Route("/metrics/", metrics)]
