"""Real brokers with ports for plain text and for TLS: the cluster lists the one, and is asked by the other.

What goes out passes through a forward proxy, which sees to whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from pulsar_steward.pulsar.settings import AdminSettings
from tests.forward_proxy import forward_proxy
from tests.live.hands import Hands
from tests.live.moves import loaded_bundle, owner_of
from tests.live.reached import Checkup, assert_told_by_nothing, by_access_tokens, said_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool
    from tests.forward_proxy import ForwardProxy

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/unit/pulsar/test_reaching.py", "tests/attacks/test_wire_reach.py"),
]


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """Two brokers, each on an address of its own, with the same ports."""
    return by_access_tokens(labs)


@pytest.fixture
def proxy() -> Iterator[ForwardProxy]:
    """Sees hosts and ports, and reads what is not encrypted."""
    with forward_proxy() as proxy:
        yield proxy


def reaching(lab: Lab, proxy: ForwardProxy, *urls: str) -> list[str]:
    """Options for these addresses of the lab, through the proxy."""
    addresses = [word for url in urls for word in ("--admin-url", url)]
    return [*addresses, "--ca-file", str(lab.ca_file), "--token-file", str(lab.token_file), "--proxy", proxy.url]


def by_tls(proxy: ForwardProxy) -> set[str]:
    """``host:port`` of everybody that a tunnel was made to."""
    return {line.split(" ")[1] for line in proxy.asked if line.startswith("CONNECT ")}


def by_plain_text(proxy: ForwardProxy) -> set[str]:
    """``host:port`` of everybody that was asked for the proxy to read."""
    return {line.split("/")[2] for line in proxy.asked if not line.startswith("CONNECT ")}


def places(urls: tuple[str, ...]) -> set[str]:
    """``host:port`` of URLs."""
    return {url.partition("://")[2] for url in urls}


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_checkup(scheme: str, lab: Lab, proxy: ForwardProxy, tmp_path: Path) -> None:
    """A check-up reads each broker by the scheme of the given address, also where the cluster lists the other port."""
    urls = lab.admin_urls_tls if scheme == "https" else lab.admin_urls
    checkup = Checkup(tmp_path, *reaching(lab, proxy, urls[0]))
    checkup.assert_complete(2)
    assert (by_tls(proxy), by_plain_text(proxy)) == reached(urls, scheme)
    seen = [proxy.read.decode("latin-1")] if scheme == "https" else []
    assert_told_by_nothing([str(lab.token)], lab, tmp_path, said_by(checkup.ended), *seen)


def test_a_checkup_by_both(lab: Lab, proxy: ForwardProxy, tmp_path: Path) -> None:
    """A check-up that names one broker by http and the other by https reads each by the scheme that is named."""
    plain, secure = lab.admin_urls[0], lab.admin_urls_tls[1]
    checkup = Checkup(tmp_path, *reaching(lab, proxy, plain, secure))
    checkup.assert_complete(2)
    assert (by_tls(proxy), by_plain_text(proxy)) == (places((secure,)), places((plain,)))


def reached(urls: tuple[str, ...], scheme: str) -> tuple[set[str], set[str]]:
    """Who is asked by TLS and in plain text where all of these are asked, and nobody else."""
    return (places(urls), set()) if scheme == "https" else (set(), places(urls))


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_an_approved_move(
    scheme: str, lab: Lab, proxy: ForwardProxy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An approved move reaches both brokers, and by no other scheme than that of the given address."""
    caplog.set_level("DEBUG")
    urls = lab.admin_urls_tls if scheme == "https" else lab.admin_urls
    token = SecretStr(str(lab.token))
    settings = AdminSettings(urls[:1], token, ca_file=str(lab.ca_file), proxy=proxy.url)
    move = loaded_bundle(lab, f"public/side-by-side-{scheme}")
    with Hands.on(lab, tmp_path, settings=settings) as hands:
        hands.heal(hands.plan_of(move))
    assert owner_of(lab, move) == move.target
    assert (by_tls(proxy), by_plain_text(proxy)) == reached(urls, scheme)
    assert_told_by_nothing([str(lab.token)], lab, tmp_path, caplog.text)
