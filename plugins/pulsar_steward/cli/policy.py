"""``steward policy``: validates a policy file, and prints the values in force with their origin."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic.fields import FieldInfo

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.cli.errors import COULD_NOT_LOOK, command_group
from pulsar_steward.cli.options import PolicyFile
from pulsar_steward.cli.output import tell
from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.model.units import counted
from pulsar_steward.policy.files import policy_file
from pulsar_steward.policy.layers import CLUSTERS, KINDS, NAMESPACES, TENANTS, Layer, is_namespace, stack
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.place import steward_home
from pulsar_steward.policy.schema import SECTIONS, Policy

app = command_group("Thresholds and limits: whether a file holds up, and what is in force.")

PolicyPath = Annotated[Path, typer.Argument(metavar="FILE", help="A policy, YAML.")]
Cluster = Annotated[
    str | None, typer.Argument(metavar="[CLUSTER]", help="Whose policy; none: what the file says at its top.")
]
Namespace = Annotated[str | None, typer.Argument(metavar="[NAMESPACE]", help="One of the cluster's, tenant/namespace.")]
Describe = Annotated[bool, typer.Option("--describe", help="Says what each key means.")]

_COMMENT_COLUMNS = 76
_PLAIN = re.compile(r"[A-Za-z][\w./-]*")
"""Names that YAML reads as text without quotes, except for words such as `on`."""


@app.command()
def check(file: PolicyPath) -> None:
    """Says whether a policy file holds up; exit code 2, and every key that does not with its place, where not."""
    try:
        policy = load_policy(file)
    except PolicyError as error:
        for trouble in error.args:
            tell(trouble, err=True)
        raise typer.Exit(COULD_NOT_LOOK) from error
    given = sum(map(len, stack(policy.written())[0].sections.values()))
    tell(
        f"{file} holds up: it sets {counted(given, 'key')}{_overrides(policy)},"
        f" all others keep their defaults; SHA-256 {policy.digest}"
    )


@app.command()
def show(
    cluster: Cluster = None, namespace: Namespace = None, *, policy: PolicyFile = None, describe: Describe = False
) -> None:
    """Prints every value in force, as YAML that can be used as a policy, and where each comes from.

    Without --policy it is the file that scheduled runs use for the cluster: policies/CLUSTER.yaml or policy.yaml in
    STEWARD_HOME.
    """
    if namespace is not None and not is_namespace(namespace):
        raise ConfigurationError(f"namespace {namespace!r}: give it as tenant/namespace")
    if cluster is not None and Path(cluster).is_file():
        raise ConfigurationError(f"cluster {cluster!r} is a file: name a policy file by --policy")
    path = policy or (policy_file(cluster) if cluster else None)
    whole = load_policy(path)
    layers = stack(whole.written(), cluster, namespace)
    effective = whole.for_cluster(cluster) if cluster else whole
    effective = effective.for_namespace(namespace) if namespace else effective
    for line in _header(path, cluster, namespace):
        tell(f"# {line}")
    checks = [info.section for info in CHECKS]
    in_order = [*(name for name in checks if name in SECTIONS), *(name for name in SECTIONS if name not in checks)]
    for name in in_order:  # sections of the checks as reports list them, then the others
        tell(f"{name}:" if SECTIONS[name].model_fields else f"{name}: {{}}")
        for line in _lines(effective, name, layers, describe=describe):
            tell(f"  {line}")
    for kind in KINDS:
        for line in _nested({kind: getattr(effective, kind)} if getattr(effective, kind) else {}):
            tell(line)


def _overrides(policy: Policy) -> str:
    """Clause about overrides for single clusters, tenants and namespaces; empty if there are none."""
    kinds = ((kind, getattr(policy, kind)) for kind in (CLUSTERS, TENANTS, NAMESPACES))
    parts = [
        f"{counted(sum(len(values) for sections in named.values() for values in sections.values()), 'key')}"
        f" for {counted(len(named), kind.removesuffix('s'))}"
        for kind, named in kinds
        if named
    ]
    return f", and {', '.join(parts)}" if parts else ""


def _header(path: Path | None, cluster: str | None, namespace: str | None) -> Iterator[str]:
    whose = [f"cluster {cluster}"] * bool(cluster) + [f"namespace {namespace}"] * bool(namespace)
    if whose:
        yield f"in force for {', '.join(whose)}"
    if path is not None:
        yield f"file: {path}"
    elif cluster is not None:
        yield f"no file for {cluster} in {steward_home()}: the defaults"


def _lines(effective: Policy, section: str, layers: Sequence[Layer], *, describe: bool) -> Iterator[str]:
    values = getattr(effective, section).model_dump(mode="json")
    for key, field in SECTIONS[section].model_fields.items():
        if describe:
            yield from textwrap.wrap(
                field.description or "", _COMMENT_COLUMNS, initial_indent="# ", subsequent_indent="# "
            )
        yield f"{key}: {_yaml(values[key])}  # {_origin(section, key, field, layers)}"


def _origin(section: str, key: str, field: FieldInfo, layers: Sequence[Layer]) -> str:
    """Origin of a value, and the values that it overrides."""
    givers = [layer for layer in layers if key in layer.sections.get(section, {})]
    if not givers:
        return "default"
    default = f"default {_yaml(field.get_default(call_default_factory=True))}"
    below = [f"{layer.words} {_yaml(layer.sections[section][key])}" for layer in reversed(givers[:-1])]
    return f"{givers[-1].words}; {', '.join([*below, default])}"


def _nested(values: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key if _PLAIN.fullmatch(key) and yaml.safe_load(key) == key else _yaml(key)}:"
            yield from _nested(value, f"{indent}  ")
        else:
            yield f"{indent}{key}: {_yaml(value)}"


def _yaml(value: Any) -> str:
    """A value as JSON, which YAML can read, also once `tell` escaped invisible characters."""
    return json.dumps(value, ensure_ascii=False, default=list)
