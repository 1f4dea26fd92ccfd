"""Messages of one or several notices, with the text that every recipient gets."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import msgspec

from pulsar_steward.model.canonical import digest
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Occasion
from pulsar_steward.outside_text import shown_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.notice import Notice

MAX_LISTED = 200
"""Maximum number of notices listed in one message; further ones are only counted."""

MANY = {
    Occasion.NOT_ASKED: "batches that nobody was asked about",
    Occasion.WAITING: "questions wait for an answer",
    Occasion.EXPIRING: "questions are about to end unanswered",
    Occasion.DONE: "batches are done and proved",
    Occasion.REFUSED: "batches were approved, and refused all the same",
    Occasion.STOPPED: "batches stopped themselves: harm was done, or cannot be ruled out",
    Occasion.FAILED: "batches failed",
    Occasion.UNKNOWN: "batches have a call of which nobody knows what came",
    Occasion.HALTED: "halts of all changes",
    Occasion.RESUMED: "times changes may be made again",
    Occasion.FINDING_NEW: "critical troubles are new or worse",
    Occasion.FINDING_GONE: "troubles are no longer critical",
}
"""Words for several notices of an occasion, after their number."""


class ListedNotice(msgspec.Struct, frozen=True, kw_only=True):
    """One notice as a message lists it."""

    cluster: str
    at: datetime
    severity: Severity
    subject: str
    text: str
    link: str
    plan_id: str | None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message, as a webhook gets it.

    Attributes:
        version: Version of this document's format; incremented when a field is removed or changes its meaning.
        id: Equal in every attempt, so that a receiver recognises a repeated message.
        event: The occasion of its notices.
        severity: The worst of its notices.
        clusters: Clusters of its notices.
        subject: One line.
        text: Lines, without the link.
        link: Address of the question or page.
        notices: All its notices.
    """

    version: int = 1
    id: str
    event: Occasion
    severity: Severity
    clusters: tuple[str, ...]
    subject: str
    text: str
    link: str
    notices: tuple[ListedNotice, ...]

    def encoded(self) -> bytes:
        """JSON with invisible characters escaped."""
        return shown_json(msgspec.json.encode(self))


def message_id(recipient: str, notices: Sequence[Notice]) -> str:
    """Id of the message with these notices to a recipient."""
    return digest([recipient, *(notice.key for notice in notices)])[:32]


def composed(name: str, notices: Sequence[Notice], airflow: str) -> Message:
    """Message of one notice or more of one occasion; without Airflow's base URL its links are paths."""
    first, alone, rest = notices[0], len(notices) == 1, len(notices) - MAX_LISTED
    lines = [f"- {notice.subject} {link(airflow, notice.path)}" for notice in notices[:MAX_LISTED]]
    lines += [f"... and {rest} more"] if rest > 0 else []
    path = first.path
    if len({notice.path for notice in notices}) > 1:
        path = REQUIRED_ACTIONS if first.occasion in {Occasion.WAITING, Occasion.EXPIRING} else f"{PAGES}/"
    clusters = tuple(sorted({notice.cluster for notice in notices}))
    return Message(
        id=name,
        event=first.occasion,
        severity=max((notice.severity for notice in notices), key=lambda severity: severity.rank),
        clusters=clusters,
        subject=first.subject if alone else f"[{', '.join(clusters)}] {len(notices)} {MANY[first.occasion]}",
        text=first.text if alone else "\n".join(lines),
        link=link(airflow, path),
        notices=tuple(
            ListedNotice(
                cluster=notice.cluster,
                at=notice.at,
                severity=notice.severity,
                subject=notice.subject,
                text=notice.text,
                link=link(airflow, notice.path),
                plan_id=notice.plan_id,
            )
            for notice in notices
        ),
    )


PAGES = "/steward"
"""Path of Steward's pages in Airflow's API server."""

REQUIRED_ACTIONS = "/required_actions?response_received=false"
"""Airflow's list of all open requests."""

VARIABLES = "/variables"
"""Airflow's list of variables."""

QUESTION_TASKS = {1: "batch.approve", 2: "batch.confirm"}
"""Ids of the tasks that ask, with their task group's id, by the number of the approver."""


def question_path(run: str, voice: int) -> str:
    """Address of a question, as linked in Airflow's own pages: the tab *Required Actions* of its task instance.

    Args:
        run: The requesting run, ``dag/run/map index``; -1 is the index of a task that is not mapped.
        voice: Number of the approver: 1, or 2 for a second person.
    """
    dag, _, rest = run.partition("/")
    run_id, _, map_index = rest.rpartition("/")
    mapped = () if map_index == "-1" else ("mapped", map_index)
    return _path("dags", dag, "runs", run_id, "tasks", QUESTION_TASKS[voice], *mapped, "required_actions")


def plan_path(plan_id: str, batch_id: str) -> str:
    """Address of a batch on the page of its plan."""
    return f"{PAGES}{_path('plans', plan_id)}#{quote(batch_id, safe='')}"


def cluster_path(cluster: str) -> str:
    """Address of a cluster's page."""
    return PAGES + _path("clusters", cluster)


def trouble_path(cluster: str, trouble_id: str) -> str:
    """Address of a trouble's page."""
    return PAGES + _path("clusters", cluster, "troubles", trouble_id)


def history_path(cluster: str) -> str:
    """Address of a cluster's history."""
    return f"{PAGES}/history?{urlencode({'cluster': cluster})}"


def link(airflow: str, path: str) -> str:
    """Whole address of a path of this module; without Airflow's base URL the path itself."""
    return f"{airflow.rstrip('/')}{path}"


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)
