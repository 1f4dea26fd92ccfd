"""Options that commands share as fields of a struct."""

from __future__ import annotations

import inspect
from typing import Annotated

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from pulsar_steward.cli.access import ClusterAccess
from pulsar_steward.cli.checkup import checkup
from pulsar_steward.cli.doctor.command import doctor
from pulsar_steward.cli.option_groups import with_option_groups
from pulsar_steward.cli.plan import plan


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
    """Options arrive in the fields of their struct, also in a struct within a struct."""
    arguments = ("f", "--hosts", "a", "--hosts", "b", "--quick", "--name", "n", "--last", "2")
    assert _run(*arguments) == ["f", Outer(name="n", inner=Inner(hosts=["a", "b"], quick=True)), 2]


def test_what_is_not_given_is_the_field_s_default() -> None:
    """A field has its default if its option is not given, or if it is no option."""
    assert _run("f") == ["f", Outer(inner=Inner()), 1]


def test_two_structs_cannot_have_one_option() -> None:
    """A command whose structs share an option is refused, as it is not clear which of them gets the value."""

    def command(*, one: Inner, other: Inner) -> None:
        raise AssertionError(one, other)

    with pytest.raises(ValueError, match="duplicate parameter name: 'hosts'"):
        with_option_groups(command)


@pytest.mark.parametrize("command", [checkup, plan, doctor])
def test_each_command_that_looks_reaches_a_cluster_in_every_way(command: object) -> None:
    """Each command that reads a cluster has an option for every field of `ClusterAccess` but the token's variable."""
    assert callable(command)
    expected = {field.name for field in msgspec.structs.fields(ClusterAccess)} - {"token_variable"}
    parameters = set(inspect.signature(command).parameters)
    assert expected <= parameters
    assert "token_variable" not in parameters
