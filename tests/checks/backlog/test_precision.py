"""With its first finding, a check says once why backlogs are approximate on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA as NEAR_QUOTA
from tests.checks.backlog.documents import size
from tests.checks.backlog.histories import GIB, judged, scenes

if TYPE_CHECKING:
    from tests.checks.backlog.conftest import Scene
    from tests.golden import Golden

SETTINGS = {
    "backlogQuotaCheckIntervalInSeconds": "300",
    "entryFilterNames": "[by-region]",
    "exposePreciseBacklogInPrometheus": "false",
}
EXACT = {
    "backlogQuotaCheckIntervalInSeconds": "60",
    "entryFilterNames": "[]",
    "exposePreciseBacklogInPrometheus": "true",
}


def near(scene: Scene, **settings: str) -> list[str]:
    """Evidence about two topics near their quota, where brokers have these settings."""
    scene.configured(**settings).namespace(quotas=size(100))
    scene.topic("acme/orders/fuller", 95).topic("acme/orders/full", 90)
    return [each.evidence for each in scene.judged(NEAR_QUOTA).findings]


def test_the_first_finding_has_them_all(scene: Scene, golden: Golden) -> None:
    """The first finding names every setting that makes backlogs approximate, and the other findings name none."""
    first, second = near(scene, **SETTINGS)
    golden(first)
    assert not any(setting in second for setting in SETTINGS)


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_is_told_only_where_it_holds(scene: Scene, setting: str) -> None:
    """The first finding names only the setting that makes backlogs approximate."""
    first, _ = near(scene, **EXACT | {setting: SETTINGS[setting]})
    assert [name for name in SETTINGS if name in first] == [setting]


@pytest.mark.parametrize("settings", [{}, EXACT], ids=["not told", "exact"])
def test_nothing_is_told_of_what_is_exact_or_not_known(scene: Scene, settings: dict[str, str]) -> None:
    """Findings name no setting that is exact or was not read."""
    first, second = near(scene, **settings)
    assert not any(name in evidence for evidence in (first, second) for name in SETTINGS)


def test_growing_backlogs_tell_them_as_well() -> None:
    """The first finding of growing backlogs names the settings that make backlogs approximate; the second does not."""
    made = scenes({"bound/t": [66 * GIB, 69 * GIB, 72 * GIB, 75 * GIB], "free/u": [0, GIB, 2 * GIB, 3 * GIB]})
    made[-1].configured(**SETTINGS)
    first, second = (each.evidence for each in judged(made).findings)
    assert all(name in first for name in SETTINGS)
    assert not any(name in second for name in SETTINGS)
