"""``steward doctor`` on rights: whom a cluster takes us for, what that role may read, and whether it may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import Answer, ClusterSpec, Fault, running_simulator
from tests.forward_proxy import saying
from tests.unit.cli.test_doctor import a_token, address_line, home, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.simulator import Simulator
    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]

__all__ = ["home"]

LOOKING, CHANGING = a_token(sub="watcher"), a_token(sub="admin")
GUARDED = ClusterSpec(brokers=1, configuration={"authenticationEnabled": "true", "authorizationEnabled": "true"})
CHANGE = "rights to change"


@pytest.fixture
def cluster() -> Iterator[Simulator]:
    """A broker that wants to know who is asking."""
    with running_simulator(GUARDED, token=CHANGING, looking_token=LOOKING) as simulator:
        yield simulator


@pytest.fixture
def asked(steward: Steward, cluster: Simulator, tmp_path: Path) -> Callable[..., Ended]:
    """Lines about the cluster, looked at by a token, and changed as the options say."""

    def ended(token: str, *options: object, change: str | None = None) -> Ended:
        (tmp_path / "looking").write_text(token, encoding="utf-8")
        (tmp_path / "changing").write_text(change or "", encoding="utf-8")
        given = ["--change-token-file", tmp_path / "changing"] if change else []
        known = ["--admin-url", cluster.admin_urls[0], "--token-file", tmp_path / "looking"]
        said = steward("doctor", *known, *given, *options, "--json")
        assert not any(secret in said.out + said.err for secret in (LOOKING, CHANGING, token, change or token))
        assert {record.method for record in cluster.requests.all()} == {"GET"}
        return said

    return ended


def test_one_for_looking_and_one_for_changing(asked: Callable[..., Ended]) -> None:
    """The tokens for looking and for changing are each named by their role, and both are fine."""
    told = lines(ended := asked(LOOKING, change=CHANGING))
    assert (ended.code, told[CHANGE]["state"]) == (0, "ok")
    assert told["rights"]["words"].startswith("by a token for 'watcher', with a superuser's rights")
    assert told[CHANGE]["words"].startswith("by a token for 'admin', with a superuser's rights")


def test_one_for_both_is_said_with_the_advice(asked: Callable[..., Ended]) -> None:
    """One token for looking and for changing is no problem, and the line tells how to have two."""
    line = lines(ended := asked(CHANGING))[CHANGE]
    assert (ended.code, line["state"]) == (0, "ok")
    assert "`pulsar_change_<cluster>`" in line["words"]
    assert "docs/permissions.md" in line["words"]


def test_the_same_one_twice_parts_nothing(asked: Callable[..., Ended]) -> None:
    """The same credentials for looking and for changing are a problem, as they do not separate the two."""
    line = lines(ended := asked(CHANGING, change=CHANGING))[CHANGE]
    assert (ended.code, line["state"]) == (1, "problem")
    assert "give looking credentials of its own" in line["remedy"]


def test_a_wrong_one_for_changing(asked: Callable[..., Ended]) -> None:
    """A wrong token for changing is a problem whose remedy names the option, and the line on looking is fine."""
    told = lines(ended := asked(LOOKING, change=a_token(sub="nobody")))
    assert (ended.code, told[CHANGE]["state"], told["rights"]["state"]) == (1, "problem", "ok")
    assert "--change-token-file" in told[CHANGE]["remedy"]


def test_a_role_that_may_change_no_bundle(asked: Callable[..., Ended], cluster: Simulator) -> None:
    """The lines name what a looking role may not read, and say that approved changes need other credentials."""
    refused = Answer(403, "This operation requires super-user access")
    cluster.faults.add(Fault(refused, path="broker-stats|configuration/runtime|isolationPolicies", times=None))
    told = lines(ended := asked(LOOKING))
    assert (ended.code, told["rights"]["state"]) == (1, "problem")
    assert "may not be read: a broker's configuration, a broker's load;" in told["rights"]["words"]
    assert "docs/permissions.md" in told["rights"]["remedy"]
    assert "approved changes need others, in `pulsar_change_<cluster>`" in told[CHANGE]["words"]


def test_another_cluster_to_change(asked: Callable[..., Ended]) -> None:
    """Addresses that lead to two clusters of the same name for looking and for changing are a problem."""
    with running_simulator(GUARDED, token=CHANGING) as other:
        line = lines(ended := asked(LOOKING, "--change-admin-url", other.admin_urls[0], change=CHANGING))[CHANGE]
    assert (ended.code, line["state"]) == (1, "problem")
    assert "the addresses lead to two clusters" in line["words"]
    assert "--change-admin-url" in line["remedy"]


def test_nobody_there_to_change(asked: Callable[..., Ended]) -> None:
    """The rights to change are unknown, with exit code 2, if the address for changes does not answer."""
    line = lines(ended := asked(LOOKING, "--change-admin-url", "http://127.0.0.1:1", change=CHANGING))[CHANGE]
    assert (ended.code, line["state"]) == (2, "unknown")
    assert "that the broker runs" in line["remedy"]


def test_everybody_may_change(steward: Steward) -> None:
    """The line on rights to change is fine if the cluster does not authenticate, and says that everybody may."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        line = lines(steward("doctor", "--admin-url", cluster.admin_urls[0], "--json"))[CHANGE]
    assert (line["state"], line["words"].startswith("everybody may")) == ("ok", True)


def test_a_token_that_expired(asked: Callable[..., Ended]) -> None:
    """An expired token is a problem, and the line says for whom it was and when it ended."""
    line = lines(ended := asked(a_token(sub="watcher", exp=86_400)))["token"]
    assert (ended.code, line["state"]) == (2, "problem")
    assert line["words"] == "the one for 'watcher' expired at 1970-01-02 00:00 UTC"
    assert "--token-file" in line["remedy"]


def test_a_port_where_nobody_speaks_http(steward: Steward) -> None:
    """The remedy for a port that does not speak HTTP asks whether it is the admin port."""
    with saying(b"\x00\x00\x00\x08\x00\x00\x00\x04\x08\x0d\x6a\x00") as place:
        line = address_line(steward("doctor", "--admin-url", f"http://{place}", "--json"))
    assert "is that the admin port of a Pulsar broker (8080 or 8443 by default)" in line["remedy"]


def test_a_proxy_where_nobody_is(steward: Steward) -> None:
    """The line on the address says that the proxy cannot be reached, and the remedy is to check the proxy."""
    options = ["--admin-url", "https://b-1:8443", "--proxy", "http://127.0.0.1:1", "--json"]
    line = address_line(steward("doctor", *options))
    assert "the forward proxy cannot be reached: check `proxy`" in line["words"]
    assert "check --proxy" in line["remedy"]


def test_folders_for_secrets(steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line on secrets names the folders for them, and a folder that everybody may write to is a problem."""
    folder = tmp_path / "secrets"
    monkeypatch.setenv("STEWARD_SECRETS_FOLDERS", f"{folder}:/nowhere")
    line = lines(steward("doctor", "--json"))["secrets"]
    assert (line["state"], f"{folder}, /nowhere only; there: none" in line["words"]) == ("ok", True)
    folder.mkdir()
    assert f"there: {folder} " in lines(steward("doctor", "--json"))["secrets"]["words"]
    folder.chmod(0o777)
    line = lines(ended := steward("doctor", "--json"))["secrets"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert f"chmod o-w {folder}" in line["remedy"]
