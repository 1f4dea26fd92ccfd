"""How commands reach a cluster: options, the environment, and how options are grouped."""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.cli.access import ClusterAccess
from pulsar_steward.cli.checkup import checkup
from pulsar_steward.cli.doctor.command import doctor
from pulsar_steward.cli.option_groups import with_option_groups
from pulsar_steward.cli.plan import plan
from pulsar_steward.cli.snapshot import Target, look, settings_of
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.schema import Policy
from tests.cases import row_by_row
from tests.forward_proxy import forward_proxy

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Steward


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


@row_by_row(
    "variable, content, token, origin",
    ("", None, None, "--token-file, or by the variable STEWARD_ADMIN_TOKEN"),
    ("from-the-variable", None, "from-the-variable", "the variable STEWARD_ADMIN_TOKEN"),
    ("x", "from-the-file \n", "from-the-file", "--token-file {file}"),
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
    file = tmp_path / "token"
    file.touch()

    with pytest.raises(ConfigurationError, match="the admin token is empty"):
        settings_of(Target(urls=("http://a:1",), access=ClusterAccess(token_file=file), policy=Policy()))


@row_by_row(
    "arguments, words",
    (["--admin-url", "http://127.0.0.1:1"], "no connection: refused"),
    (["--admin-url", "URL"], "give a superuser's token by --token-file, or by the variable STEWARD_ADMIN_TOKEN"),
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


@pytest.mark.usefixtures("few_checks")
def test_a_checkup_through_a_proxy(steward: Steward) -> None:
    """A check-up through a proxy reads all brokers, and no request reaches any of them past the proxy."""
    for mapped in (False, True):
        with running_simulator(ClusterSpec()) as cluster, forward_proxy() as proxy:
            listed = [url.removeprefix("http://") for url in cluster.admin_urls]
            there = [f"localhost:{each.rpartition(':')[2]}" for each in listed] if mapped else listed
            maps = [f"--address-map={each}=http://{other}" for each, other in zip(listed, there, strict=True) if mapped]
            options = ["--admin-url", cluster.admin_urls[0], *maps, "--proxy", proxy.url, "--json", "-"]
            ended = steward("checkup", *options)
            asked = [record.path for record in cluster.requests.all()]
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["about"]["brokers_read"] == 3
        passed_on = [urlsplit(unquote(line.split(" ")[1])) for line in proxy.asked]
        assert sorted(asked) == sorted(each.path for each in passed_on)
        assert {each.netloc for each in passed_on} >= set(there)


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


@row_by_row(
    "options, words",
    (["--address-map", "b:8080"], "--address-map: expected ADVERTISED=URL"),
    (["--address-map", "b:8080=c:1"], "no http:// or https:// address"),
    (["--proxy", "proxy"], "`proxy`"),
    (["--client-key", "key.pem"], "`client_key_file`"),
    (["--oauth2-file", "no-such-file"], "cannot be read: there is no such file: check its path"),
    (["--basic-file", "no-such-file"], "cannot be read: there is no such file: check its path"),
    (["--token-file", "a", "--basic-file", "b"], "--token-file and --basic-file are several kinds of credentials"),
)
def test_options_that_cannot_work_are_one_line(
    options: list[str], words: str, steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options that cannot work end the check-up with exit code 2 and one line about them on standard error."""
    monkeypatch.chdir(tmp_path)
    ended = steward("checkup", "--admin-url", "https://b:8443", *options)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    """Two options, and a field that is none."""

    hosts: Annotated[list[str] | None, typer.Option(help="Repeatable.")] = None
    quick: Annotated[bool, typer.Option("--quick")] = False
    kept: str = "as it was"


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    """An option, and those of another struct."""

    name: Annotated[str | None, typer.Option()] = None
    inner: Inner


def _run(*arguments: str) -> list[object]:
    taken: list[object] = []
    app = typer.Typer()

    @app.command()
    @with_option_groups
    def command(
        file: Annotated[str, typer.Argument()], *, outer: Outer, last: Annotated[int, typer.Option()] = 1
    ) -> None:
        taken.extend([file, outer, last])

    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output
    return taken


def test_what_is_given_arrives_in_its_struct() -> None:
    arguments = ("f", "--hosts", "a", "--hosts", "b", "--quick", "--name", "n", "--last", "2")
    assert _run(*arguments) == ["f", Outer(name="n", inner=Inner(hosts=["a", "b"], quick=True)), 2]


def test_what_is_not_given_is_the_field_s_default() -> None:
    assert _run("f") == ["f", Outer(inner=Inner()), 1]


def test_two_structs_cannot_have_one_option() -> None:
    """A command whose structs share an option is refused, as it is not clear which of them gets the value."""

    def command(*, one: Inner, other: Inner) -> None:
        raise AssertionError(one, other)

    with pytest.raises(ValueError, match="duplicate parameter name: 'hosts'"):
        with_option_groups(command)


@pytest.mark.parametrize("command", [checkup, plan, doctor])
def test_each_command_that_looks_reaches_a_cluster_in_every_way(command: object) -> None:
    assert callable(command)
    expected = {field.name for field in msgspec.structs.fields(ClusterAccess)} - {"token_variable"}
    parameters = set(inspect.signature(command).parameters)
    assert expected <= parameters
    assert "token_variable" not in parameters
