"""File of a fleet: clusters that are looked at together, and how each is reached. It holds no secret, only paths."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec
from pydantic import BeforeValidator, Field, model_validator

from pulsar_steward.model.section import Section
from pulsar_steward.policy.load import read_checked
from pulsar_steward.policy.names import ClusterName
from pulsar_steward.policy.trouble import PolicyTrouble, troubles_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

WHERE = "token_file", "oauth2_file", "basic_file", "client_cert"
"""Keys of files that prove who asks."""


_HOST = re.compile(r"^[^/]*(//[^/]*)?")
"""Scheme and host of an address, of which the case says nothing."""


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


class FleetMember(Section):
    """One cluster of a fleet; its keys are the options of `steward checkup`, with `_` for `-`."""

    name: ClusterName = Field(description="what to call it; a folder of snapshots as well")
    admin_url: Annotated[tuple[str, ...], BeforeValidator(_several)] = Field(
        (), description="a broker's admin address, or a list of them, tried in turn"
    )
    kafka: str | None = Field(None, description="in its place: `host:port,...` of a Kafka cluster")
    kafka_config: Path | None = None
    region: str | None = Field(None, min_length=1, description="where it runs; clusters of one region are compared")
    token_file: Path | None = None
    oauth2_file: Path | None = None
    basic_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    ca_file: Path | None = None
    allow_unencrypted_token: bool = False
    address_map: dict[str, str] = Field(default_factory=dict)
    proxy: str | None = None
    front_door: bool = False

    @model_validator(mode="after")
    def _of_one_system(self) -> Self:
        if bool(self.admin_url) == bool(self.kafka):
            raise ValueError("give either admin_url or, of a Kafka cluster, kafka")
        given = {name for name, value in self if value} - {"name", "region", "allow_unencrypted_token"}
        if self.kafka and (strange := sorted(given - {"kafka", "kafka_config"})):
            raise ValueError(f"{strange[0]} is about Pulsar, and this is a Kafka cluster: see kafka_config")
        if self.kafka_config and not self.kafka:
            raise ValueError("kafka_config is about Kafka, and this is a Pulsar cluster")
        return self


class Fleet(Section):
    """The file."""

    clusters: tuple[FleetMember, ...]


class ConnectedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that scheduled runs observe, as its connection in Airflow says.

    Attributes:
        cluster: Its name in the connection.
        variables: `AdminSettings.in_environment`, or `KafkaSettings.in_environment`, secrets among them; empty: the
            connection is not usable.
        region: `region` in the connection's extra; None: not said.
        trouble: Why it is not usable, with the remedy; empty: it is.
    """

    cluster: str
    variables: dict[str, str] = {}
    region: str | None = None
    trouble: str = ""


def load_fleet(path: Path, unusable: Callable[[FleetMember], Iterable[tuple[str, str]]] = lambda _: ()) -> Fleet:
    """Loads the file; paths in it are relative to its folder.

    Args:
        path: The file.
        unusable: Function from a cluster to its keys that cannot be used, with the reason.

    Raises:
        PolicyError: If there is no such file, it is not YAML, a key is unknown, ill-typed or not usable, or a name or
            an address stands twice; the message lists all such places, with line and column.
    """
    fleet = Fleet.model_validate(read_checked(path, partial(_troubles_in, unusable)))
    return Fleet(clusters=tuple(_from_folder(each, path.parent) for each in fleet.clusters))


def _from_folder(cluster: FleetMember, folder: Path) -> FleetMember:
    paths = {key: folder / value for key, value in cluster if isinstance(value, Path)}
    return cluster.model_copy(update=paths)


def _troubles_in(
    unusable: Callable[[FleetMember], Iterable[tuple[str, str]]], document: Any
) -> Iterator[PolicyTrouble]:
    keys = ", ".join(FleetMember.model_fields)
    if not isinstance(document, dict):
        yield PolicyTrouble(
            (), "has to begin with `clusters:`, and below it a list of clusters, each with its name and keys"
        )
        return
    found = troubles_of(Fleet, document)
    for each in found:
        far = each.key and len(each.place) > 1 and "did you mean" not in each.words
        yield each._replace(words=f"{each.words}; a cluster has {keys}") if far else each
    if not found:
        yield from _troubles_between(Fleet.model_validate(document).clusters, unusable)
    listed = document.get("clusters")
    if listed == []:
        yield PolicyTrouble(("clusters",), "is empty: name a cluster, with its admin_url or kafka")
    names = [one.get("name") if isinstance(one, dict) else None for one in listed] if isinstance(listed, list) else []
    for place, name in enumerate(names):
        if isinstance(name, str) and names.count(name) > 1:
            yield PolicyTrouble(("clusters", place, "name"), f"{name} stands twice: give each its own")


def _troubles_between(
    clusters: Sequence[FleetMember], unusable: Callable[[FleetMember], Iterable[tuple[str, str]]]
) -> Iterator[PolicyTrouble]:
    first: dict[tuple[object, ...], str] = {}
    for number, each in enumerate(clusters):
        yield from (PolicyTrouble(("clusters", number, key), words) for key, words in unusable(each))
        key = "kafka" if each.kafka else "admin_url"
        for address in each.kafka.split(",") if each.kafka else each.admin_url:
            place = _HOST.sub(lambda found: found[0].lower(), address.strip().rstrip("/"))
            way = place, each.proxy, frozenset(each.address_map.items()), each.front_door
            other = first.setdefault(way, each.name)
            if other != each.name:
                words = f"{other} and {each.name} are the same cluster, as both have {address}: leave one of them out"
                yield PolicyTrouble(("clusters", number, key), words)
