"""Changes never tried on the brokers' version are not called, whatever was approved; each version is asked for once."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import Answer, Fault, running_simulator
from tests.apply.worksite import SKEWED, Worksite, quick_policy, said
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def a_site(folder: Path, *versions: str, **guards: Any) -> Iterator[Worksite]:
    """Three brokers, the first of which run these versions, and the others 4.0.7."""
    with running_simulator(replace(SKEWED, versions=versions), session_s=3600) as simulator:
        engine = ledger_at(f"sqlite:///{folder / 'ledger.db'}")
        yield Worksite(simulator, engine, policy=quick_policy(guards=guards))
        engine.dispose()


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        (("2.10.4",) * 3, "version_tried: Pulsar 2.10.4 has no `destinationBroker`"),
        (("4.0.7", "4.0.7", "2.10.6"), "Pulsar 2.10.6 has no `destinationBroker`"),
        (("4.0.7", "4.0.7", "4.3.0"), "Pulsar 4.3.0 was never tried: it is newer than 4.2.4"),
        (("4.0.7", "no version"), "which version of Pulsar"),
    ],
)
def test_nothing_is_called_where_a_broker_lacks_it(tmp_path: Path, versions: tuple[str, ...], reason: str) -> None:
    """A batch is refused if the version of any broker lacks the call, was never tried or is not known."""
    with a_site(tmp_path, *versions) as site:
        outcomes = site.carry_out(site.approved(site.move(0), site.move(1)))
        assert said(outcomes) == ["refused", "refused"]
        assert reason in outcomes[0].reason
        assert site.untouched()


def test_brokers_that_do_not_tell_the_topics_of_a_bundle_are_refused_for_their_version(tmp_path: Path) -> None:
    """Brokers before 2.11 answer 404 for a bundle's topics: their version is why they are refused."""
    with a_site(tmp_path, *(("2.10.4",) * 3)) as site:
        site.simulator.faults.add(Fault(Answer(404), "topicHashPositions", times=None))
        plan = site.approved(site.move("0x00000000_0xffffffff", namespace="shop/orders"))
        (outcome,) = site.carry_out(plan)
        assert "version_tried: Pulsar 2.10.4 has no `destinationBroker`" in outcome.reason


def test_a_broker_that_does_not_answer_for_its_version(tmp_path: Path) -> None:
    """A batch is refused if a broker does not answer for its version, and the reason names the broker."""
    with a_site(tmp_path) as site:
        plan = site.approved(site.move(0))
        site.simulator.faults.add(Fault(Answer(500), path="/brokers/version", broker_id=site.brokers[2], times=None))
        (outcome,) = site.carry_out(plan)
        assert outcome.outcome == "refused"
        assert f"/brokers/version at {site.brokers[2]}: 500" in outcome.reason
        assert site.untouched()


def test_what_the_operator_vouches_for_is_done(tmp_path: Path) -> None:
    """A move is done on a newer version if the policy lists that version as tried here."""
    with a_site(tmp_path, "4.3.0", "4.3.0", "4.3.1", versions_tried_here=["4.3"]) as site:
        assert said(site.carry_out(site.approved(site.move(0)))) == ["done"]


def test_each_broker_is_asked_once_for_a_batch(tmp_path: Path) -> None:
    """Each broker is asked for its version once a batch, and not again before every step."""
    with a_site(tmp_path) as site:
        plan = site.approved(site.move(0), site.move(1, 2))
        site.simulator.requests.clear()
        assert said(site.carry_out(plan)) == ["done", "done"]
        asked = [record.broker_id for record in site.simulator.requests.all() if record.path.endswith("/version")]
        assert sorted(asked) == sorted(site.brokers)
