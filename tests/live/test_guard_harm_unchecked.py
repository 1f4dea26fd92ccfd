"""Brokers that check no quota: what stands there without effect, until a move makes it bite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.faults.clients.publishing import steady
from lab.faults.real.ground import COMMON_SETTINGS
from lab.faults.real.quotas import UNCHECKED
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import ChangeSetting
from tests.live.hands import Hands, move_of
from tests.live.plots import plot
from tests.live.producers import QUOTA_BYTES, REFUSED, SENT, moved_by_hand, newcomer, over_quota, send_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/apply/test_guards_before_calls.py::test_a_move_that_would_do_harm_is_refused",
        "tests/apply/test_guards_before_calls.py::test_a_setting_that_would_do_harm_is_refused",
    ),
]


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """Brokers that check no quota."""
    return labs.lab(auth="token", broker_settings=dict((*COMMON_SETTINGS, *UNCHECKED)))


@pytest.fixture
def hands(lab: Lab, tmp_path: Path) -> Iterator[Hands]:
    with Hands.on(lab, tmp_path) as hands:
        yield hands


@pytest.mark.parametrize(("policy", "refused"), REFUSED.items())
def test_a_producer_sends_until_its_bundle_moves(lab: Lab, hands: Hands, policy: str, refused: str) -> None:
    with plot(lab, f"unchecked-{policy.replace('_', '-')}") as here, over_quota(here, policy) as producer:
        with steady([producer], rate=20, size=1_000):
            here.until(here.topic(), lambda shown: shown["backlogSize"] > 3 * QUOTA_BYTES, "it goes on for ten seconds")
        assert newcomer(here) == refused
        reason = hands.refused_by("producers_return", move_of(here))
        assert "PRODUCERS COULD NOT COME BACK" in reason
        assert send_by(producer) == SENT
        moved_by_hand(here)
        assert send_by(producer) != SENT
        assert newcomer(here) == refused


def test_a_quota_that_nobody_checks_is_not_set(lab: Lab, hands: Hands) -> None:
    with plot(lab, "not-checked") as here:
        limit = BacklogQuota(limit_bytes=1 << 30, policy=QuotaPolicy.HOLD)
        change = ChangeSetting(namespace=here.namespace, name=SettingName.SIZE_QUOTA, before=None, after=limit)
        reason = hands.refused_by("quotas_checked", change)
        assert "brokers do not check" in reason
        assert here.admin.policies(here.namespace)["backlog_quota_map"] == {}
