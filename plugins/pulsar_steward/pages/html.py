"""The pages for people: clusters, one cluster, a plan, a step's life, and history."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse

from pulsar_steward.errors import SnapshotError, StewardError
from pulsar_steward.ledger.counts import ledger_counts
from pulsar_steward.ledger.history import Filter, history, whole_story
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.model.plan import KINDS
from pulsar_steward.model.units import counted
from pulsar_steward.outside_text import shown
from pulsar_steward.pages.api import Api, Before, FindingsAsked, as_json, chosen_of
from pulsar_steward.pages.backlogs import backlogs
from pulsar_steward.pages.brokers import broker_rows, bundle_map, bundle_row, listed_brokers
from pulsar_steward.pages.clusters import cluster_cards, cluster_trends
from pulsar_steward.pages.findings import FindingQuery, Order, findings_page, sections
from pulsar_steward.pages.moves import clusters_to_move_between, observed_move
from pulsar_steward.pages.placement import LISTED_FAILOVERS, failovers
from pulsar_steward.pages.plan_data import MAX_EVENTS, Verification, story_csv
from pulsar_steward.pages.plans import newest_plans, plan_of_run, plan_view
from pulsar_steward.pages.rendering import ASSETS, Renderer, asset, below_api, link_to
from pulsar_steward.pages.sources import NotKnown, NotUnderstood, newest_of
from pulsar_steward.pages.troubles import all_troubles, sparks, trouble_view, troubles_since
from pulsar_steward.report.metrics import OPENMETRICS_TYPE, PROMETHEUS_TYPE, exposition
from pulsar_steward.report.since import SPANS, span_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pulsar_steward.ledger.history import LedgerEvent
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.report.overview import SnapshotSummary

MOST_CARDS = 6
"""Number of clusters up to which each has a card; more of them are a table."""

EVENTS = 100
EVENTS_OF_TROUBLE = 10


@dataclass(frozen=True)
class Pages:
    """The pages; each method is a route."""

    sources: Sources
    verification: Verification
    renderer: Renderer

    def router(self) -> APIRouter:
        """Routes of the pages; the API's document leaves them out."""
        router = APIRouter(include_in_schema=False)
        routes: tuple[tuple[str, Callable[..., Any]], ...] = (
            ("/", self.clusters),
            ("/clusters/{cluster}", self.cluster),
            ("/clusters/{cluster}/troubles/{trouble_id}", self.trouble),
            ("/moves", self.move),
            ("/plans/{plan_id}", self.plan),
            ("/plans/{plan_id}/steps/{step_id}", self.step),
            ("/question", self.question),
            ("/history", self.history),
            ("/history.csv", self.history_as_csv),
            ("/history.json", self.history_as_json),
            ("/chain", self.chain),
            ("/metrics", self.metrics),
            ("/assets/{name}", self.asset),
        )
        for path, endpoint in routes:
            router.add_api_route(path, endpoint)
        return router

    def clusters(self, request: Request) -> Response:
        """A card for each cluster; of many a row in a table."""
        cards, healths = cluster_cards(self.sources), list(ClusterHealth)
        return self.renderer.page(request, "clusters.html.j2", cards=cards, most_cards=MOST_CARDS, healths=healths)

    def cluster(
        self,
        request: Request,
        cluster: str,
        asked: FindingsAsked,
        brokers: Literal["", "all"] = "",
        since: Literal["", "1h", "8h", "24h"] = "",
        bundle: str = "",
        each: Literal["", "1"] = "",
    ) -> Response:
        """One cluster: the guide, findings, brokers, bundles, backlogs, trends and plans."""
        asked = msgspec.structs.replace(asked, together=not each)
        (card,) = cluster_cards(self.sources, cluster)
        values = _of_snapshot(self.sources, card.cluster, asked, [waits.plan_id for waits in card.waiting], bundle)
        if "brokers" in values:
            values["listed"] = listed_brokers(values["brokers"], every=brokers == "all")
        plans = newest_plans(self.sources, cluster)
        spans: dict[str, Any] = {"spans": SPANS, "span": since, "sparks": {}}
        if since and (newest := self.sources.newest(cluster)) is not None:
            spans["since"] = troubles_since(self.sources, newest, span_of(since))
            spans["answers"] = self._answers(cluster, since)
        asked_for: dict[str, Any] = {"asked": asked, "orders": list(Order), "severities": list(Severity)}
        return self.renderer.page(request, "cluster.html.j2", card=card, plans=plans, **asked_for, **(spans | values))

    def _answers(self, cluster: str, since: str) -> list[LedgerEvent]:
        """What people said and did since then, the newest first."""
        from_then = self.sources.now() - span_of(since)
        events = history(self.sources.engine, Filter(cluster=cluster), most=EVENTS).events
        return [each for each in events if each.person and each.at >= from_then][:EVENTS_OF_TROUBLE]

    def trouble(self, request: Request, cluster: str, trouble_id: str) -> Response:
        """One trouble: whom it meets, what to do, and what people answered about such ones."""
        (card,) = cluster_cards(self.sources, cluster)
        try:
            view = trouble_view(self.sources, newest_of(self.sources, cluster), trouble_id)
        except NotKnown as error:
            return self.renderer.page(
                request, "error.html.j2", status=404, words=str(error), status_code=404, cluster=cluster
            )
        chosen = Filter(cluster=cluster, kind=view.kind)
        story = history(self.sources.engine, chosen, most=EVENTS) if view.kind else None
        if story is not None:
            of_people = [each for each in story.events if each.person][:EVENTS_OF_TROUBLE]
            story = msgspec.structs.replace(story, events=tuple(of_people))
        return self.renderer.page(request, "trouble.html.j2", card=card, view=view, story=story)

    def move(
        self,
        request: Request,
        namespace: str = "",
        source: Annotated[str, Query(alias="from")] = "",
        to: str = "",
    ) -> Response:
        """The stages of moving a namespace; without its name and both clusters, a form that asks for them."""
        asked = {"namespace": namespace.strip(), "source": source, "target": to}
        move = observed_move(self.sources, *asked.values()) if all(asked.values()) else None
        clusters = clusters_to_move_between(self.sources)
        return self.renderer.page(request, "move.html.j2", asked=asked, move=move, clusters=clusters)

    def plan(self, request: Request, plan_id: str) -> Response:
        """A plan, step by step, with its outcome."""
        view = plan_view(self.sources, plan_id)
        story = history(self.sources.engine, Filter(plan_id=plan_id), most=EVENTS)
        waits = any(batch.question for batch in view.batches)
        card = cluster_cards(self.sources, view.cluster)[0] if waits else None
        return self.renderer.page(request, "plan.html.j2", plan=view, card=card, story=story)

    def step(self, request: Request, plan_id: str, step_id: str) -> Response:
        """A step's whole life."""
        view = plan_view(self.sources, plan_id)
        steps = ((batch, each) for batch in view.batches for each in batch.steps if each.step_id == step_id)
        batch, found = next(steps, (None, None))
        if batch is None or found is None:
            raise NotKnown(f"plan {plan_id} has no step {step_id!r}")
        chosen = Filter(plan_id=plan_id, batch_id=batch.batch_id, step_id=step_id)
        story = history(self.sources.engine, chosen, most=EVENTS)
        replaced = "" if found.found is None else msgspec.json.encode(found.found, order="sorted").decode()
        of_plan: dict[str, Any] = {"plan": view, "batch": batch, "story": story}
        return self.renderer.page(request, "step.html.j2", step=found, replaced=replaced, **of_plan)

    def question(self, request: Request, dag_id: str, run_id: str, map_index: str = "-1") -> Response:
        """Redirects from a question in Airflow's pages to its batch."""
        plan_id, batch_id = plan_of_run(self.sources, f"{dag_id}/{run_id}/{map_index}")
        target = link_to(str(request.scope.get("root_path", "")), "plans", plan_id)
        return RedirectResponse(f"{target}#{batch_id}", 303)

    def history(
        self,
        request: Request,
        cluster: str = "",
        namespace: str = "",
        person: str = "",
        kind: str = "",
        before: Before = None,
    ) -> Response:
        """The ledger as a story."""
        found = history(self.sources.engine, chosen_of(cluster, namespace, person, kind), before=before, most=EVENTS)
        return self.renderer.page(
            request,
            "history.html.j2",
            story=found,
            asked={"cluster": cluster, "namespace": namespace, "person": person, "kind": kind},
            report=self.verification.known(found.head),
            kinds=KINDS,
            clusters=[each.cluster for each in cluster_cards(self.sources)],
        )

    def history_as_csv(self, cluster: str = "", namespace: str = "", person: str = "", kind: str = "") -> Response:
        """The same as a file for spreadsheets."""
        lines = story_csv(self.sources, chosen_of(cluster, namespace, person, kind))
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=_file("csv"))

    def history_as_json(self, cluster: str = "", namespace: str = "", person: str = "", kind: str = "") -> Response:
        """The same as a file for programs."""
        events = list(whole_story(self.sources.engine, chosen_of(cluster, namespace, person, kind), MAX_EVENTS))
        return as_json(events, headers=_file("json"))

    def chain(self, request: Request) -> Response:
        """Result of comparing the ledger with its chain."""
        return self.renderer.page(request, "chain.html.j2", report=self.verification.report())

    def metrics(self, request: Request) -> Response:
        """Metrics for Prometheus, which needs a login like everybody else."""
        sources = self.sources
        counts = ledger_counts(sources.engine, sources.now(), sources.shelf.clusters())
        openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
        summaries = {name: _summary(sources, name) for name in counts.clusters}
        troubles = {
            name: all_troubles(sources, newest)
            for name, summary in summaries.items()
            if summary is not None and (newest := sources.newest(name)) is not None
        }
        text = exposition(counts, summaries, troubles, sources.now(), openmetrics=openmetrics)
        return Response(text, media_type=OPENMETRICS_TYPE if openmetrics else PROMETHEUS_TYPE)

    def asset(self, name: str) -> Response:
        """A file that pages load."""
        if name not in ASSETS:
            raise NotKnown(f"there is no file {name!r}")
        return Response(asset(name), media_type=ASSETS[name], headers={"Cache-Control": "private, max-age=300"})


def _summary(sources: Sources, cluster: str) -> SnapshotSummary | None:
    try:
        return sources.summary(newest_of(sources, cluster))
    except (NotKnown, SnapshotError):
        return None


def _of_snapshot(
    sources: Sources, cluster: str, asked: FindingQuery, waiting: list[str], bundle: str
) -> dict[str, Any]:
    """Parts of a page that come from the newest snapshot; without one, `trouble` has the reason."""
    plans = [sources.ledger.plan(plan_id) for plan_id in dict.fromkeys(waiting)]
    try:
        snapshot = newest_of(sources, cluster)
        return {
            "trouble": None,
            "all_troubles": all_troubles(sources, snapshot),
            "page": findings_page(sources, snapshot, asked),
            "sections": sections(sources.summary(snapshot)),
            "brokers": broker_rows(sources, snapshot),
            "bundles": bundle_map(sources, snapshot, plans),
            "bundle": bundle,
            "bundle_row": bundle_row(snapshot, bundle, plans) if bundle else None,
            "failovers": failovers(sources, snapshot),
            "listed_failovers": LISTED_FAILOVERS,
            "backlogs": backlogs(sources, snapshot),
            "trends": cluster_trends(sources, snapshot),
            "sparks": sparks(sources, snapshot),
        }
    except (NotKnown, SnapshotError) as error:  # the ledger's content is shown anyway
        return {"trouble": str(error), "page": None}


def _file(kind: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="steward-history.{kind}"'}


log = logging.getLogger(__name__)

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Pages run and load nothing but their own files, and only Airflow's own pages may frame them."""


STATUSES = {NotKnown: 404, NotUnderstood: 400}
"""Status of an error; all others get 503."""

MAX_TEXT = 1_000
"""Maximum length of a parameter, in characters: the longest names of Pulsar are shorter."""

_UNTAKEABLE = re.compile("[\0\ud800-\udfff]")


def make_app(sources: Sources, may_look: Callable[..., Any]) -> FastAPI:
    """The application, to be mounted in Airflow's API server.

    Args:
        sources: Ledger and snapshots.
        may_look: A FastAPI dependency that raises an error if access is not allowed. Every route has it.
    """
    app = FastAPI(
        title="Pulsar Steward",
        description="What Steward sees, asks and did. Everything here only reads.",
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # it would respond without a login; `/api/openapi.json` is a route like any other
        dependencies=[Depends(may_look), Depends(_require_legible)],
    )
    verification = Verification(sources)
    renderer = Renderer(sources.now)
    app.include_router(Api(sources, verification).router(app))
    app.include_router(Pages(sources, verification, renderer).router())

    @app.middleware("http")
    async def guarded(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await go_on(request)
        response.headers.update(HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    @app.exception_handler(StewardError)
    def told(request: Request, error: StewardError) -> Response:
        status = STATUSES.get(type(error), 503)
        if type(error) not in STATUSES:
            log.warning("%s could not be shown: %s", request.url.path, error)
        if below_api(request):
            return as_json({"detail": shown(error)}, status)
        return renderer.page(request, "error.html.j2", status=status, words=str(error), status_code=status)

    return app


def _require_legible(request: Request) -> None:
    """Refuses text that a database does not accept, at one place for all filters and names of all routes.

    PostgreSQL accepts no NUL, no driver accepts half a character, and SQLite no pattern over 50,000 bytes.

    Raises:
        NotUnderstood: Names the parameter.
    """
    for name, text in (*request.query_params.multi_items(), *request.path_params.items()):
        if len(text) > MAX_TEXT:
            raise NotUnderstood(f"{name} has {counted(len(text), 'character')}, and {MAX_TEXT:,} are the most")
        if found := _UNTAKEABLE.search(text):
            raise NotUnderstood(f"{name} holds the character {shown(found[0])}, which no name has")
