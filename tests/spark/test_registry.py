"""Every check has everything that a check needs."""

from __future__ import annotations

from pathlib import Path

from pulsar_steward.model import catalog
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.registry import CHECKS

PAGES = Path(__file__).resolve().parents[2] / "docs" / "checks"


def test_what_is_described_is_what_is_carried_out() -> None:
    """Words and checks are listed in two places, as words need no Spark: neither has more, nor another order."""
    assert [check.info for check in CHECKS] == list(catalog.CHECKS.values())


def test_every_check_has_a_page_and_thresholds() -> None:
    """No page and no section of the policy is missing, and no page is of a check that is gone."""
    ids = {check.info.check_id for check in CHECKS}

    assert {page.stem for page in PAGES.glob("*.md")} == ids
    assert {check_id.replace("-", "_") for check_id in ids} <= Policy.model_fields.keys()
