"""Snapshots one after the other, of topics whose backlogs change."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.backlog_growing import CHECK
from tests.checks.backlog.conftest import TAKEN_AT, Scene
from tests.checks.backlog.documents import size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import Check, Judgement
    from pulsar_steward.model.finding import Severity
    from pulsar_steward.policy.schema import Policy

GIB = 1024**3
STEP = timedelta(minutes=15)


def scenes(backlogs: Mapping[str, Sequence[int | None]], step: timedelta = STEP) -> list[Scene]:
    """A scene for each backlog, the last one now; None: the topic was not loaded."""
    count = max(map(len, backlogs.values()))
    made = []
    for number in range(count):
        scene = Scene().configured().namespace("acme/bound", size(100 * GIB)).namespace("acme/free")
        scene.rows["snapshot"][0]["taken_at"] = TAKEN_AT - (count - 1 - number) * step
        for name, history in backlogs.items():
            value = ([None] * (count - len(history)) + list(history))[number]
            if value is not None:
                scene.topic(f"acme/{name}", value)
        made.append(scene)
    return made


def judged(made: Sequence[Scene], policy: Policy | None = None, check: Check = CHECK) -> Judgement:
    """Judgement of the last scene, which knows the earlier ones."""
    return made[-1].judged(check, policy, [scene.rows for scene in made[-2::-1]])


def by_name(judgement: Judgement) -> dict[str, Severity]:
    """Severities by the topics' names without the tenant, in the findings' order."""
    return {each.subject.removeprefix("persistent://acme/"): each.severity for each in judgement.findings}
