"""The JSON API: the data of the pages, for programs; its OpenAPI document is `/api/openapi.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response

from pulsar_steward.ledger.history import Filter, LedgerEvent, Page, PlanLine, history
from pulsar_steward.ledger.verify import IntegrityReport
from pulsar_steward.model.staged_move import StagedMove
from pulsar_steward.outside_text import shown_json
from pulsar_steward.pages.backlogs import Backlogs, backlogs
from pulsar_steward.pages.brokers import Broker, BundleMap, broker_rows, bundle_map
from pulsar_steward.pages.clusters import ClusterCard, FigureTrend, cluster_cards, cluster_trends
from pulsar_steward.pages.findings import (
    MAX_PAGE,
    PAGE,
    FindingPage,
    FindingQuery,
    FindingSection,
    Order,
    findings_page,
    sections,
)
from pulsar_steward.pages.moves import observed_move
from pulsar_steward.pages.placement import Failovers, failovers
from pulsar_steward.pages.plan_data import PlanView
from pulsar_steward.pages.plans import newest_plans, plan_view
from pulsar_steward.pages.sources import newest_of
from pulsar_steward.pages.troubles import all_troubles
from pulsar_steward.report.checkup.document import TroubleReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fastapi import FastAPI

    from pulsar_steward.pages.plan_data import Verification
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

MAX_EVENTS = 500

Before = Annotated[int | None, Query(ge=1, le=2**63 - 1)]
"""Place in the ledger's chain to go back from; at most the largest number of a database."""

_OF_NEWEST: dict[str, tuple[Callable[[Sources, Snapshot], object], Any, str]] = {
    "checks": (
        lambda sources, snapshot: sections(sources.summary(snapshot)),
        tuple[FindingSection, ...],
        "Verdicts of all checks on the newest snapshot, in the order of the guide.",
    ),
    "troubles": (all_troubles, tuple[TroubleReport, ...], "Troubles: findings of one cause, the worst first."),
    "brokers": (broker_rows, tuple[Broker, ...], "Brokers with their load."),
    "bundles": (
        lambda sources, snapshot: bundle_map(sources, snapshot, ()),
        BundleMap,
        "The largest bundles by broker.",
    ),
    "failovers": (failovers, Failovers, "How long the topics of each broker would be gone without it."),
    "backlogs": (backlogs, Backlogs, "Backlogs of the namespaces nearest to their quota, and delayed messages."),
    "trends": (cluster_trends, tuple[FigureTrend, ...], "Figures of the cluster over time."),
}
"""What is read from a cluster's newest snapshot alone, by the name of its route: function, result, description."""

_REFERENCE = "#/components/schemas/{name}"


def as_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response; invisible characters are escaped in JSON's way."""
    return Response(shown_json(msgspec.json.encode(value)), status, headers, "application/json")


@dataclass(frozen=True)
class Api:
    """The API's responses; each method is a route."""

    sources: Sources
    verification: Verification

    def router(self, app: FastAPI) -> APIRouter:
        """Routes of the API, including its own document."""
        router = APIRouter(prefix="/api", tags=["Steward"])
        routes: dict[str, tuple[Callable[..., Any], Any]] = {
            "/clusters": (self.clusters, tuple[ClusterCard, ...]),
            "/clusters/{cluster}": (self.cluster, ClusterCard),
            "/clusters/{cluster}/findings": (self.findings, FindingPage),
            **{f"/clusters/{{cluster}}/{name}": (self._of_newest(name), _OF_NEWEST[name][1]) for name in _OF_NEWEST},
            "/clusters/{cluster}/plans": (self.plans, tuple[PlanLine, ...]),
            "/plans/{plan_id}": (self.plan, PlanView),
            "/moves": (self.move, StagedMove),
            "/history": (self.history, Page),
            "/chain": (self.chain, IntegrityReport),
        }
        kinds = [kind for _, kind in routes.values()]
        schemas, components = msgspec.json.schema_components([*kinds, LedgerEvent], ref_template=_REFERENCE)
        for (path, (endpoint, _)), schema in zip(routes.items(), schemas, strict=False):
            content = {"application/json": {"schema": schema}}
            described: dict[int | str, Any] = {200: {"description": "As described.", "content": content}}
            router.add_api_route(path, endpoint, response_model=None, responses=described)
        router.add_api_route("/openapi.json", lambda: as_json(_openapi(app, components)), include_in_schema=False)
        return router

    def _of_newest(self, name: str) -> Callable[[str], Response]:
        read, _, description = _OF_NEWEST[name]

        def endpoint(cluster: str) -> Response:
            return as_json(read(self.sources, newest_of(self.sources, cluster)))

        endpoint.__name__, endpoint.__doc__ = name, description  # FastAPI documents a route by them
        return endpoint

    def clusters(self) -> Response:
        """All clusters; first the ones that need somebody."""
        return as_json(cluster_cards(self.sources))

    def cluster(self, cluster: str) -> Response:
        """One cluster."""
        return as_json(cluster_cards(self.sources, cluster)[0])

    def findings(self, cluster: str, asked: FindingsAsked) -> Response:
        """Findings of the newest snapshot, by pages."""
        return as_json(findings_page(self.sources, newest_of(self.sources, cluster), asked))

    def plans(self, cluster: str) -> Response:
        """The newest plans."""
        return as_json(newest_plans(self.sources, cluster))

    def plan(self, plan_id: str) -> Response:
        """A plan with everything that became of it."""
        return as_json(plan_view(self.sources, plan_id))

    def move(self, namespace: str, source: Annotated[str, Query(alias="from")], to: str) -> Response:
        """Stages of moving a namespace from one cluster to another, as far as their newest snapshots tell."""
        return as_json(observed_move(self.sources, namespace, source, to))

    def history(
        self,
        cluster: str = "",
        namespace: str = "",
        person: str = "",
        kind: str = "",
        plan_id: str = "",
        step_id: str = "",
        before: Before = None,
        size: Annotated[int, Query(ge=1, le=MAX_EVENTS)] = 100,
    ) -> Response:
        """The ledger as a story, newest first; `before` of a page leads to the next one."""
        chosen = chosen_of(cluster, namespace, person, kind, plan_id, step_id)
        return as_json(history(self.sources.engine, chosen, before=before, most=size))

    def chain(self) -> Response:
        """Compares every row of the ledger with its chain, and that with the ends that were noted elsewhere."""
        return as_json(self.verification.report())


def asked_of(
    severity: str = "",
    check: str = "",
    text: str = "",
    subject: str = "",
    order: Order = Order.SEVERITY,
    page: Annotated[int, Query(ge=1)] = 1,
    size: Annotated[int, Query(ge=1, le=MAX_PAGE)] = PAGE,
) -> FindingQuery:
    """The findings that a request asks for; empty parameters do not filter."""
    return FindingQuery(severity=severity, check=check, text=text, subject=subject, order=order, page=page, size=size)


FindingsAsked = Annotated[FindingQuery, Depends(asked_of)]


def chosen_of(cluster: str, namespace: str, person: str, kind: str, plan_id: str = "", step_id: str = "") -> Filter:
    """The filter of a request; empty parameters do not filter."""
    return Filter(
        cluster=cluster.strip() or None,
        namespace=namespace.strip() or None,
        person=person.strip() or None,
        kind=kind.strip() or None,
        plan_id=plan_id.strip() or None,
        batch_id=step_id.strip().partition(".")[0] or None,
        step_id=step_id.strip() or None,
    )


def _openapi(app: FastAPI, components: dict[str, Any]) -> dict[str, Any]:
    routes = [route for route in app.routes if str(getattr(route, "path", "")).startswith("/api/")]
    document = get_openapi(title=app.title, version="1", description=app.description, routes=routes)
    document.setdefault("components", {}).setdefault("schemas", {}).update(components)
    return document
