"""Real brokers that only nginx reaches, which ends TLS: by one port for each broker, and by one door for all of them.

They list themselves under names that nobody but they can resolve.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from lab.faults.real.ground import COMMON_SETTINGS
from lab.nginx import running_nginx
from lab.testing import need_nginx
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.pulsar.addresses import address_map
from pulsar_steward.pulsar.settings import AdminSettings
from tests.command import steward
from tests.live.hands import Hands
from tests.live.moves import loaded_bundle, owner_of
from tests.live.reached import Checkup, assert_told_by_nothing, said_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.nginx import Nginx
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/unit/pulsar/test_reaching.py",
        "tests/attacks/test_wire_reach.py",
        "tests/unit/cli/test_reaching.py",
        "tests/unit/cli/test_doctor.py",
    ),
]


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """Two brokers."""
    return labs.lab(brokers=2, auth="token", advertised="name", broker_settings=dict(COMMON_SETTINGS))


@pytest.fixture
def nginx(lab: Lab) -> Iterator[Nginx]:
    """A port for each broker, and one more for both of them in turn."""
    brokers = [f"{broker.host}:{broker.web_port}" for broker in lab.brokers]
    with running_nginx(need_nginx(), *([broker] for broker in brokers), brokers) as running:
        yield running


def mapped(lab: Lab, nginx: Nginx) -> dict[str, str]:
    """Returns nginx's address for each broker, by the broker's id."""
    return {broker.broker_id: url for broker, url in zip(lab.brokers, nginx.urls, strict=False)}


def reaching(lab: Lab, nginx: Nginx, url: str) -> list[str]:
    """Options for an address of nginx, its authority and the lab's token."""
    return ["--admin-url", url, "--ca-file", str(nginx.ca_file), "--token-file", str(lab.token_file)]


def settings(lab: Lab, nginx: Nginx, url: str, places: dict[str, str]) -> AdminSettings:
    """The same as settings, with a map or for the front door."""
    return AdminSettings(
        (url,),
        SecretStr(str(lab.token)),
        ca_file=str(nginx.ca_file),
        address_map=address_map(places),
        front_door=not places,
    )


def ports_of(calls: list[str]) -> set[str]:
    """Ports of nginx that calls came by."""
    return {call.split(" ")[0] for call in calls}


def test_a_checkup_by_a_map(lab: Lab, nginx: Nginx, tmp_path: Path) -> None:
    lines = [word for broker, url in mapped(lab, nginx).items() for word in ("--address-map", f"{broker}={url}")]
    checkup = Checkup(tmp_path, *reaching(lab, nginx, nginx.urls[0]), *lines)
    checkup.assert_complete(2)
    assert ports_of(nginx.calls()) == {url.rpartition(":")[2] for url in nginx.urls[:2]}
    assert nginx.calls("GET") == nginx.calls()
    assert_told_by_nothing([str(lab.token)], lab, tmp_path, said_by(checkup.ended), "".join(nginx.calls()))


@pytest.mark.parametrize("command", ["checkup", "doctor"])
def test_without_a_map(command: str, lab: Lab, nginx: Nginx, tmp_path: Path) -> None:
    ended = steward(tmp_path, command, *reaching(lab, nginx, nginx.urls[0]))
    assert ended.returncode == 2, said_by(ended)
    assert "--address-map" in said_by(ended)
    assert_told_by_nothing([str(lab.token)], lab, tmp_path, said_by(ended))


def test_an_approved_move_by_a_map(lab: Lab, nginx: Nginx, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    move = loaded_bundle(lab, "public/nginx")
    made = settings(lab, nginx, nginx.urls[0], mapped(lab, nginx))
    with Hands.on(lab, tmp_path, settings=made) as hands:
        hands.heal(hands.plan_of(move))
    assert owner_of(lab, move) == move.target
    sent = [call for call in nginx.calls("PUT") if "/unload" in call]
    assert sent
    assert sent[-1].endswith(" 204")
    assert_told_by_nothing([str(lab.token)], lab, tmp_path, caplog.text, "".join(nginx.calls()))


@pytest.mark.parametrize("command", ["checkup", "plan"])
def test_a_front_door(command: str, lab: Lab, nginx: Nginx, tmp_path: Path) -> None:
    ended = steward(tmp_path, command, *reaching(lab, nginx, nginx.urls[2]), "--front-door")
    told = " ".join(said_by(ended).split())
    assert (ended.returncode, ended.stdout) == (2, ""), told
    assert "`front_door`" in told
    assert "--address-map" in told


def test_what_a_front_door_is_good_for(lab: Lab, nginx: Nginx, tmp_path: Path) -> None:
    ended = steward(tmp_path, "doctor", *reaching(lab, nginx, nginx.urls[2]), "--front-door", "--json")
    told = {line["subject"]: line for line in json.loads(ended.stdout)["lines"]}
    assert ended.returncode == 1, said_by(ended)
    assert told[f"admin API {nginx.urls[2]}"]["state"] == "ok"
    assert told["rights"]["words"].startswith("by a token for 'admin', with a superuser's rights")
    assert told["load manager"]["state"] == "ok"
    assert "2 brokers listed, and none was asked" in told["brokers"]["words"]
    assert_told_by_nothing([str(lab.token)], lab, tmp_path, said_by(ended))


def test_an_approved_move_behind_a_front_door(lab: Lab, nginx: Nginx, tmp_path: Path) -> None:
    move = loaded_bundle(lab, "public/front-door")
    with Hands.on(lab, tmp_path, settings=settings(lab, nginx, nginx.urls[2], {})) as hands:
        plan = hands.plan_of(move)
        hands.approve(plan, plan.batches[0])
        with pytest.raises(Refused, match="nothing could be proved"):
            hands.apply(plan, plan.batches[0])
        (outcome,) = hands.ledger.outcomes(plan.plan_id, plan.batches[0].batch_id)
    assert outcome.outcome is Outcome.REFUSED
    assert "`front_door`" in outcome.reason
    assert owner_of(lab, move) == move.source
    assert nginx.calls("GET") == nginx.calls()
    assert_told_by_nothing([str(lab.token)], lab, tmp_path, outcome.reason, "".join(nginx.calls()))
