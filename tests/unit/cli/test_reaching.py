"""How a command reaches a cluster: addresses, tokens and certificates, and what is refused before anything is asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.cli.access import ClusterAccess
from pulsar_steward.cli.snapshot import Target, look, settings_of
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]

TOKEN = "made.up-token_of-a.superuser"


def test_secrets_go_by_the_environment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a job has the addresses and token of this command, and no variable of another cluster."""
    monkeypatch.setenv("STEWARD_ADMIN_CA_FILE", "/of/another/cluster")
    monkeypatch.setenv("STEWARD_ADMIN_TOKEN", "of-another-cluster")
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    target = Target(urls=("https://a:1", "https://b:1"), access=ClusterAccess(token_file=file), policy=Policy())

    given = settings_of(target).in_environment(os.environ)

    assert {name: value for name, value in given.items() if name.startswith("STEWARD_ADMIN")} == {
        "STEWARD_ADMIN_URLS": "https://a:1,https://b:1",
        "STEWARD_ADMIN_TOKEN": TOKEN,
        "STEWARD_ADMIN_TOKEN_FILE": str(file),
        "STEWARD_ADMIN_ORIGIN": f"--token-file {file}",
    }


@pytest.mark.parametrize(
    ("variable", "content", "token", "origin"),
    [
        ("", None, None, "--token-file, or by the variable STEWARD_ADMIN_TOKEN"),
        ("from-the-variable", None, "from-the-variable", "the variable STEWARD_ADMIN_TOKEN"),
        ("x", "from-the-file \n", "from-the-file", "--token-file {file}"),
    ],
)
def test_where_the_token_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, content: str | None, token: str | None, origin: str
) -> None:
    """The token file takes precedence over the variable, and a command works without a token; messages say which."""
    monkeypatch.setenv("STEWARD_ADMIN_TOKEN", variable)
    file = None
    if content is not None:
        file = tmp_path / "token"
        file.write_text(content, encoding="utf-8")

    settings = settings_of(Target(urls=("https://a:1",), access=ClusterAccess(token_file=file), policy=Policy()))

    assert (settings.token and settings.token.get_secret_value()) == token
    assert settings.origin == origin.format(file=file)


def test_how_the_cluster_is_reached_is_as_the_options_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a certificate is made absolute, and the limits are those of the named cluster."""
    monkeypatch.chdir(tmp_path)
    policy = Policy.model_validate({"clusters": {"west": {"admin": {"read_attempts": 7}}}})
    usual = Target(urls=("http://a:1",), policy=policy)
    named = Target(
        urls=("http://a:1",),
        policy=policy,
        cluster="west",
        access=ClusterAccess(ca_file=Path("ca.pem"), allow_unencrypted_token=True),
    )

    first, second = settings_of(usual), settings_of(named)

    assert (first.ca_file, second.ca_file) == (None, str(tmp_path / "ca.pem"))
    assert (first.allow_unencrypted_token, second.allow_unencrypted_token) == (False, True)
    assert (first.limits.read_attempts, second.limits.read_attempts) == (3, 7)


def test_an_empty_token_file_is_told(tmp_path: Path) -> None:
    """An empty token file is refused with an error that says so."""
    file = tmp_path / "token"
    file.touch()

    with pytest.raises(ConfigurationError, match="the admin token is empty"):
        settings_of(Target(urls=("http://a:1",), access=ClusterAccess(token_file=file), policy=Policy()))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--admin-url", "http://127.0.0.1:1"], "no connection: refused"),
        (["--admin-url", "URL"], "give a superuser's token by --token-file, or by the variable STEWARD_ADMIN_TOKEN"),
    ],
)
def test_who_does_not_let_us_in_is_told(steward: Steward, arguments: list[str], words: str) -> None:
    """A refused connection or a missing token ends the check-up with exit code 2 and one line about the call."""
    with running_simulator(ClusterSpec(brokers=1), token=TOKEN) as cluster:
        ended = steward("checkup", *(each.replace("URL", cluster.admin_urls[0]) for each in arguments))

    assert (ended.code, ended.out) == (2, "")
    progress, error = ended.err.splitlines()
    assert progress.endswith("who is there")
    assert error.startswith("error: GET /admin/v2/brokers/configuration/runtime at 127.0.0.1:")
    assert words in error


def test_a_name_that_can_be_no_folder_is_refused() -> None:
    """A cluster name that cannot name a folder is refused before a snapshot is collected."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        target = Target(urls=cluster.admin_urls, cluster="../up", policy=Policy())
        with pytest.raises(ConfigurationError, match="--cluster"):
            look(target, Path("nowhere"), lambda _: None)


def test_keeping_a_snapshot_needs_a_folder(steward: Steward, tmp_path: Path) -> None:
    """The check-up ends with exit code 2 if the folder for its snapshot cannot be made."""
    (tmp_path / "file").touch()

    ended = steward("checkup", "--admin-url", "http://127.0.0.1:1", "--keep", tmp_path / "file" / "below")

    assert ended.code == 2
    assert "this folder cannot be made" in ended.err
