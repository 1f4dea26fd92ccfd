"""Names by tenants and brokers cannot strand a bundle: what may fail for a name does so before anything is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.errors import InvalidName
from pulsar_steward.model.bundles import FULL_RANGE, BundleRange
from pulsar_steward.model.loss import InFlight
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.pulsar import paths
from pulsar_steward.pulsar.reader import Reader
from tests.apply.worksite import said
from tests.builders import a_step

if TYPE_CHECKING:
    from pulsar_steward.pulsar.statistics import TopicStatistics
    from tests.apply.worksite import Worksite

WHOLE = str(BundleRange(0, FULL_RANGE))
UNUSABLE = [
    "non-persistent://shop/orders/..",
    "persistent://shop/orders/.",
    "persistent://shop/orders/",
    "persistent://shop/orders",
    "persistent://shop/orders/\udcff",
    "persistent://payments/live/t",
    "shop/orders/t",
    "",
]


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_bundle_whose_only_topic_cannot_be_looked_up_is_not_unloaded(
    site: Worksite, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A move is refused if the name of the bundle's only topic cannot be looked up."""
    monkeypatch.setattr(Reader, "topic_positions", lambda *_: {name: 1})
    outcomes = site.carry_out(site.approved(site.move(WHOLE, namespace="shop/orders")))
    assert said(outcomes) == ["refused"]
    assert "holds no topic" in outcomes[0].reason
    assert site.untouched()


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_name_that_cannot_be_looked_up_is_passed_over(
    site: Worksite, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A move is done if another topic of the bundle can be looked up."""
    told = Reader.topic_positions

    def with_another(self: Reader, namespace: str, bundle: str) -> Any:
        return {name: 0, **(told(self, namespace, bundle) or {})}

    monkeypatch.setattr(Reader, "topic_positions", with_another)
    assert said(site.carry_out(site.approved(site.move(WHOLE, namespace="shop/orders")))) == ["done"]
    assert site.owner(WHOLE, "shop/orders") == site.brokers[1]


def test_a_topic_of_another_bundle_is_not_looked_up_for_this_one(
    site: Worksite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that a broker tells is not used for a lookup if it is not in the bundle."""
    topic = "persistent://shop/orders/t-partition-0"
    monkeypatch.setattr(Reader, "topic_positions", lambda *_: {topic: 0})
    position = BundleRange(0, 1)
    with LiveReader(site.settings) as look:
        assert look.topic_in("shop/orders", str(position)) is None
        assert look.topic_in("shop/orders", WHOLE) == topic


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_name_that_cannot_be_asked_for_is_not_watched(
    site: Worksite, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A move is done although the busiest topic of its bundle has a name for which no request can be made."""
    told = LiveReader.topics

    def with_another(self: LiveReader, broker: str, namespace: str, bundle: str) -> dict[str, TopicStatistics]:
        topics = told(self, broker, namespace, bundle)
        return {name: next(iter(topics.values())), **topics} if topics else topics

    monkeypatch.setattr(LiveReader, "topics", with_another)
    may_lose = InFlight(again=0, volatile_topics=1, lost=1_000_000)
    step = a_step(site.move(WHOLE, namespace="shop/orders"), step_id="b1.s01", in_flight=may_lose)
    assert said(site.carry_out(site.approved(step))) == ["done"]


@pytest.mark.parametrize("value", [ValueError("'..' cannot be a part"), OverflowError("too big"), RecursionError()])
def test_an_error_that_nobody_thought_of_before_a_call_changes_nothing(
    site: Worksite, monkeypatch: pytest.MonkeyPatch, value: Exception
) -> None:
    """An unexpected error before a call has all steps refused, and nothing is called."""

    def broken(*_: object) -> Any:
        raise value

    monkeypatch.setattr(Reader, "topic_positions", broken)
    outcomes = site.carry_out(site.approved(site.move(0), site.move(1)))
    assert said(outcomes) == ["refused", "refused"]
    assert f"nothing was called: {type(value).__name__}" in outcomes[0].reason
    assert site.untouched()


@pytest.mark.parametrize("name", [name for name in UNUSABLE if "payments" not in name])
def test_no_path_is_made_of_a_name_that_is_none(name: str) -> None:
    """An unusable topic name is an error, and no path is made of it."""
    with pytest.raises(InvalidName):
        paths.topic(name)


def test_a_setting_of_an_unusable_topic_is_refused(site: Worksite) -> None:
    """A change of a setting is refused if the name of its topic is unusable."""
    change = ChangeSetting(
        namespace="shop/orders",
        topic="persistent://shop/orders/..",
        name=SettingName.TTL,
        before=None,
        after=TimeToLive(seconds=60),
    )
    assert said(site.carry_out(site.approved(change))) == ["refused"]
    assert site.untouched()
