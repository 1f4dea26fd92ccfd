"""Real brokers that speak TLS only, on both ports, and take clients with a certificate of their authority only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.faults.real.ground import COMMON_SETTINGS
from tests.live.hands import Hands
from tests.live.moves import loaded_bundle, owner_of
from tests.live.reached import Checkup, assert_told_by_nothing, said_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/unit/pulsar/test_reaching.py", "tests/attacks/test_wire_reach.py"),
]


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[Lab]:
    """Two brokers."""
    lab = labs.lab(brokers=2, auth="tls", listeners="tls", broker_settings=dict(COMMON_SETTINGS))
    yield lab
    labs.discard(lab)


def trusting(lab: Lab) -> list[str]:
    """Options for the lab's address and authority."""
    return ["--admin-url", lab.admin_urls[0], "--ca-file", str(lab.ca_file)]


def key_of(lab: Lab) -> list[str]:
    """The lines of the client's private key."""
    assert lab.client_files is not None
    return lab.client_files.client_key_file.read_text(encoding="utf-8").splitlines()[1:-1]


def test_a_checkup_by_a_client_certificate(lab: Lab, tmp_path: Path) -> None:
    """A check-up by a client certificate reads every broker of a cluster that speaks only TLS."""
    assert lab.client_files is not None
    _, certificate, key = map(str, lab.client_files)
    checkup = Checkup(tmp_path, *trusting(lab), "--client-cert", certificate, "--client-key", key)
    checkup.assert_complete(2)
    assert_told_by_nothing(key_of(lab), lab, tmp_path, said_by(checkup.ended))


def test_without_a_client_certificate(lab: Lab, tmp_path: Path) -> None:
    """A check-up without a client certificate reads no broker, and its error names `--client-cert`."""
    Checkup(tmp_path, *trusting(lab)).assert_shut_out("--client-cert")


def test_an_approved_move(lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A move is approved, carried out and proved on brokers that speak only TLS, and the key is written nowhere."""
    caplog.set_level("DEBUG")
    move = loaded_bundle(lab, "public/tls")
    with Hands.on(lab, tmp_path) as hands:
        hands.heal(hands.plan_of(move))
    assert owner_of(lab, move) == move.target
    assert_told_by_nothing(key_of(lab), lab, tmp_path, caplog.text)
