"""Real brokers that speak TLS only, on both ports, and take clients with a certificate of their authority only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lab.faults.real.ground import COMMON_SETTINGS
from tests.command import steward
from tests.live.hands import Hands
from tests.live.moves import loaded_bundle, owner_of
from tests.live.test_checkup import BUSY_MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/unit/admin/test_reaching.py", "tests/attacks/test_wire_reach.py"),
]


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[Lab]:
    """Two brokers."""
    lab = labs.lab(brokers=2, auth="tls", broker_settings=dict(COMMON_SETTINGS))
    yield lab
    labs.discard(lab)


def trusting(lab: Lab) -> list[str]:
    """Options for the lab's address and authority."""
    assert lab.client_files is not None
    return ["--admin-url", lab.admin_urls[0], "--ca-file", str(lab.client_files.ca_file)]


def test_a_checkup_by_a_client_certificate(lab: Lab, tmp_path: Path) -> None:
    """Every broker is read, by the addresses that the cluster lists."""
    assert lab.client_files is not None
    (tmp_path / "policy.yaml").write_text(BUSY_MACHINE, encoding="utf-8")
    _, certificate, key = map(str, lab.client_files)
    mine = ["--client-cert", certificate, "--client-key", key]
    ended = steward(tmp_path, "checkup", *trusting(lab), *mine, "--policy", "policy.yaml", "--json", "out.json")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    about = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["about"]
    assert (about["complete"], about["brokers_read"]) == (True, 2)


def test_without_a_client_certificate(lab: Lab, tmp_path: Path) -> None:
    """Nobody is let in, and the line says what to give."""
    ended = steward(tmp_path, "checkup", *trusting(lab))

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--client-cert" in ended.stderr


def test_an_approved_move(lab: Lab, tmp_path: Path) -> None:
    """Recorded, approved, carried out and proved by TLS alone, redirects to the owner included."""
    move = loaded_bundle(lab, "public/tls")
    with Hands.on(lab, tmp_path) as hands:
        hands.heal(hands.plan_of(move))

    assert owner_of(lab, move) == move.target
