"""File of a fleet: clusters that are looked at together, and how each is reached. It holds no secret, only paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec
from pydantic import BeforeValidator, Field, model_validator

from pulsar_steward.model.section import Section
from pulsar_steward.policy.load import read_checked
from pulsar_steward.policy.names import ClusterName
from pulsar_steward.policy.trouble import PolicyTrouble, troubles_of

if TYPE_CHECKING:
    from collections.abc import Iterator

WHERE = "token_file", "oauth2_file", "basic_file", "client_cert"
"""Keys of files that prove who asks."""


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


def load_fleet(path: Path) -> Fleet:
    """Loads the file; paths in it are relative to its folder.

    Raises:
        PolicyError: If there is no such file, it is not YAML, a key is unknown or ill-typed, or a name stands twice;
            the message lists all such places, with line and column.
    """
    fleet = Fleet.model_validate(read_checked(path, _troubles_in))
    return Fleet(clusters=tuple(_from_folder(each, path.parent) for each in fleet.clusters))


def _from_folder(cluster: FleetMember, folder: Path) -> FleetMember:
    paths = {key: folder / value for key, value in cluster if isinstance(value, Path)}
    return cluster.model_copy(update=paths)


def _troubles_in(document: Any) -> Iterator[PolicyTrouble]:
    keys = ", ".join(FleetMember.model_fields)
    for each in troubles_of(Fleet, document):
        far = each.key and len(each.place) > 1 and "did you mean" not in each.words
        yield each._replace(words=f"{each.words}; a cluster has {keys}") if far else each
    listed = document.get("clusters") if isinstance(document, dict) else None
    if listed == []:
        yield PolicyTrouble(("clusters",), "is empty: name a cluster, with its admin_url or kafka")
    names = [one.get("name") if isinstance(one, dict) else None for one in listed] if isinstance(listed, list) else []
    for place, name in enumerate(names):
        if isinstance(name, str) and names.count(name) > 1:
            yield PolicyTrouble(("clusters", place, "name"), f"{name} stands twice: give each its own")
