"""``steward policy``: whether a policy file holds up, and what is in force with it."""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from pulsar_steward.cli.options import help_without_command, policy_of
from pulsar_steward.errors import PolicyError
from pulsar_steward.model.catalog import CHECKS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.policy.section import Section
from pulsar_steward.report.checkup.text import count

app = typer.Typer(rich_markup_mode=None)

PolicyPath = Annotated[Path, typer.Argument(metavar="FILE", help="A cluster's policy, YAML.")]
PolicyPathOrNone = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A policy; none: the defaults.")]
Describe = Annotated[bool, typer.Option("--describe", help="Says what each key means.")]

_COMMENT_COLUMNS = 76


@app.callback(invoke_without_command=True)
def _options(context: typer.Context) -> None:
    """Thresholds and limits: whether a file holds up, and what is in force."""
    help_without_command(context)


@app.command()
def check(file: PolicyPath) -> None:
    """Says whether a policy file holds up; exit code 2, and which key, where it does not."""
    policy = policy_of(file)
    given = sum(len(getattr(policy, name).model_fields_set) for name in policy.model_fields_set)
    typer.echo(
        f"{file} holds up: it sets {count(given, 'key')}, all others keep their defaults; SHA-256 {policy.digest}"
    )


@app.command()
def show(file: PolicyPathOrNone = None, *, describe: Describe = False) -> None:
    """Prints every value in force, as YAML that can be used as a policy, and which of them the file sets."""
    policy = policy_of(file)
    for name in _in_order():
        section = getattr(policy, name)
        if not isinstance(section, Section):
            raise PolicyError(f"{name}: is no section")
        typer.echo(f"{name}:")
        for line in _lines(section, from_file=name in policy.model_fields_set, describe=describe):
            typer.echo(f"  {line}")


def _in_order() -> list[str]:
    """The checks' sections in the order in which reports list them, then the others."""
    checks = [check_id.replace("-", "_") for check_id in CHECKS]
    return [
        *(name for name in checks if name in Policy.model_fields),
        *(n for n in Policy.model_fields if n not in checks),
    ]


def _lines(section: Section, *, from_file: bool, describe: bool) -> Iterator[str]:
    for key, field in type(section).model_fields.items():
        if describe:
            yield from textwrap.wrap(
                field.description or "", _COMMENT_COLUMNS, initial_indent="# ", subsequent_indent="# "
            )
        value = f"{key}: {_yaml(getattr(section, key))}"
        given = from_file and key in section.model_fields_set
        yield f"{value}  # from the file; the default is {_yaml(_default(field))}" if given else value


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True)


def _yaml(value: Any) -> str:
    """A value as JSON, which YAML can read."""
    return json.dumps(value, ensure_ascii=False, default=list)
