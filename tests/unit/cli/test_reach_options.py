"""Options by which a cluster is reached: through a proxy, and by other addresses than the listed ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from lab.simulator import ClusterSpec, running_simulator
from tests.forward_proxy import forward_proxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]


def test_a_checkup_through_a_proxy(steward: Steward) -> None:
    """A check-up through a proxy reads all brokers, and no request reaches any of them past the proxy."""
    with running_simulator(ClusterSpec()) as cluster, forward_proxy() as proxy:
        ended = steward("checkup", "--admin-url", cluster.admin_urls[0], "--proxy", proxy.url, "--json", "-")
        asked = [f"http://{record.broker_id}{record.path}" for record in cluster.requests.all()]
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["about"]["brokers_read"] == 3
    passed_on = [unquote(line.split(" ")[1].partition("?")[0]) for line in proxy.asked]
    assert sorted(asked) == sorted(passed_on)
    assert {url for url in cluster.admin_urls if any(each.startswith(f"{url}/") for each in passed_on)} == set(
        cluster.admin_urls
    )


def test_a_checkup_by_other_addresses_than_the_listed_ones(steward: Steward) -> None:
    """A check-up with an address map asks each broker at its mapped address."""
    with running_simulator(ClusterSpec()) as cluster, forward_proxy() as proxy:
        maps = []
        for url in cluster.admin_urls:
            listed = url.removeprefix("http://")
            maps += ["--address-map", f"{listed}=http://localhost:{listed.rpartition(':')[2]}"]
        options = ["--admin-url", cluster.admin_urls[0], *maps, "--proxy", proxy.url, "--json", "-"]
        ended = steward("checkup", *options)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["about"]["brokers_read"] == 3
    assert len({line.split("/")[2] for line in proxy.asked if "localhost" in line}) == 3


def test_an_address_that_is_said_to_be_two_brokers_is_refused(steward: Steward) -> None:
    """An address map that gives two brokers the same address is refused before any statistics are read."""
    with running_simulator(ClusterSpec()) as cluster:
        url, *others = cluster.admin_urls
        listed = others[0].removeprefix("http://")
        ended = steward("checkup", "--admin-url", url, "--address-map", f"{listed}={url}")
        asked = [record.path for record in cluster.requests.all() if "broker-stats/topics" in record.path]
    assert ended.code == 2
    assert "are both reached by" in ended.err.replace("\n", " ")
    assert "`address_map`" in ended.err
    assert asked == []


@pytest.mark.parametrize("command", ["checkup", "plan"])
def test_behind_a_front_door_brokers_are_not_looked_at(command: str, steward: Steward) -> None:
    """A command behind a front door ends with exit code 2 and names the remedy, as no broker can be read."""
    with running_simulator(ClusterSpec()) as cluster:
        ended = steward(command, "--admin-url", cluster.admin_urls[0], "--front-door")
    assert ended.code == 2
    assert "could be read" in ended.err
    assert "`front_door`" in ended.err
    assert "--address-map" in ended.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address-map", "b:8080"], "--address-map: expected ADVERTISED=URL"),
        (["--address-map", "b:8080=c:1"], "no http:// or https:// address"),
        (["--proxy", "proxy"], "`proxy`"),
        (["--client-key", "key.pem"], "`client_key_file`"),
        (["--oauth2-file", "no-such-file"], "cannot be read: FileNotFoundError"),
        (["--basic-file", "no-such-file"], "cannot be read: FileNotFoundError"),
        (["--token-file", "a", "--basic-file", "b"], "--token-file and --basic-file are several kinds of credentials"),
    ],
)
def test_options_that_cannot_work_are_one_line(
    options: list[str], words: str, steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options that cannot work end the check-up with exit code 2 and one line about them on standard error."""
    monkeypatch.chdir(tmp_path)
    ended = steward("checkup", "--admin-url", "https://b:8443", *options)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err
