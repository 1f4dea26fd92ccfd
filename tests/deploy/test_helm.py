"""Promises of deploy/helm: keys that the official chart knows, the image's own places, no secret, no open door."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft7Validator
from packaging.version import Version

from pulsar_steward.runtime.installed_airflow import NEWEST_TRIED, OLDEST_TRIED
from tests.deploy.test_compose import DOCKERFILE, OURS

if TYPE_CHECKING:
    from collections.abc import Iterator

HELM = Path(__file__).parents[2] / "deploy" / "helm"
TEXT = (HELM / "values.yaml").read_text(encoding="utf-8")
VALUES: dict[str, Any] = yaml.safe_load(TEXT)
CLAIM: dict[str, Any] = yaml.safe_load((HELM / "steward-home.yaml").read_text(encoding="utf-8"))

CHART = "1.22.0"

STRING, OPTIONAL = {"type": "string"}, {"type": ["string", "null"]}
BOOLEAN, INTEGER = {"type": "boolean"}, {"type": "integer"}
SELECTED = {"type": "object", "required": ["key"], "properties": {"name": STRING, "key": STRING}}
VARIABLE = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": STRING, "value": STRING, "valueFrom": {"properties": {"secretKeyRef": SELECTED}}},
    "anyOf": [{"required": ["value"]}, {"required": ["valueFrom"]}],
}
CLAIMED = {"type": "object", "required": ["claimName"], "properties": {"claimName": STRING}}

KEYS: dict[str, dict[str, Any]] = {
    "airflowVersion": STRING,
    "executor": {"type": "string", "pattern": r"^[A-Z]\w+Executor$"},
    "images.airflow.repository": OPTIONAL,
    "images.airflow.tag": OPTIONAL,
    "config.*.*": {"type": ["boolean", "integer", "number", "string"]},
    "env": {"type": "array", "items": {**VARIABLE, "required": ["name", "value"]}},
    "secret": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["envName", "secretName"],
            "additionalProperties": False,
            "properties": {"envName": STRING, "secretName": STRING, "secretKey": STRING},
        },
    },
    "scheduler.replicas": INTEGER,
    "scheduler.env": {"type": "array", "items": VARIABLE},
    "scheduler.extraVolumes": {
        "type": "array",
        "items": {"required": ["name"], "properties": {"name": STRING, "persistentVolumeClaim": CLAIMED}},
    },
    "scheduler.extraVolumeMounts": {
        "type": "array",
        "items": {"required": ["mountPath", "name"], "properties": {"name": STRING, "mountPath": STRING}},
    },
    "scheduler.securityContexts.pod.runAsUser": INTEGER,
    "scheduler.securityContexts.pod.runAsGroup": INTEGER,
    "scheduler.securityContexts.pod.fsGroup": INTEGER,
    "scheduler.securityContexts.pod.fsGroupChangePolicy": STRING,
    "scheduler.resources.*.*": {"type": ["string", "number"]},
    "triggerer.enabled": BOOLEAN,
    "createUserJob.defaultUser.enabled": BOOLEAN,
    "fernetKeySecretName": OPTIONAL,
    "apiSecretKeySecretName": OPTIONAL,
    "jwtSecretName": OPTIONAL,
    "data.metadataSecretName": OPTIONAL,
    "postgresql.enabled": BOOLEAN,
    "statsd.enabled": BOOLEAN,
}
"""Keys of the chart's `values.schema.json` (apache/airflow, tag helm-chart/1.22.0), and what it accepts there.

The schema has 800 kB; these are the parts of it that the values use. A copy of the whole accepted them on 2026-11-23.
"""


def leaves(values: dict[str, Any], *above: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is no object, with its path."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, *above, key)
        else:
            yield (*above, key), value


def accepted(path: tuple[str, ...]) -> dict[str, Any] | None:
    """Values that the chart accepts at a path; None: it does not know it."""
    for known, schema in KEYS.items():
        parts = known.split(".")
        if len(parts) == len(path) and all(part in ("*", key) for part, key in zip(parts, path, strict=True)):
            return schema
    return None


def of_scheduler() -> dict[str, Any]:
    """Variables of the pod that runs tasks: a value, or where it comes from."""
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in VALUES["scheduler"]["env"]}


@pytest.mark.parametrize(
    ("path", "value"), list(leaves(VALUES)), ids=lambda part: ".".join(part) if isinstance(part, tuple) else ""
)
def test_the_chart_knows_every_key(path: tuple[str, ...], value: Any) -> None:
    schema = accepted(path)
    assert schema is not None
    assert [error.message for error in Draft7Validator(schema).iter_errors(value)] == []


def test_the_keys_are_of_the_chart_that_the_head_installs() -> None:
    assert re.findall(r"chart, ([\d.]+),|--version ([\d.]+)", TEXT) == [(CHART, ""), ("", CHART)]


def test_the_image_is_the_dockerfiles() -> None:
    image = VALUES["images"]["airflow"]
    assert f"{image['repository'].rpartition('/')[2]}:{image['tag']}" == OURS
    assert f"FROM apache/airflow:slim-{VALUES['airflowVersion']}-python" in DOCKERFILE
    assert f"steward airflow install {VALUES['config']['core']['dags_folder']}" in DOCKERFILE
    assert f"docker build --tag {image['repository']}:{image['tag']} " in TEXT


def test_the_airflow_is_one_that_was_tried() -> None:
    release = Version(VALUES["airflowVersion"]).release
    assert release >= OLDEST_TRIED
    assert release[:2] <= NEWEST_TRIED
    assert VALUES["triggerer"]["enabled"] is True


def test_the_home_is_a_folder_of_the_volume() -> None:
    (mount,), (volume,) = VALUES["scheduler"]["extraVolumeMounts"], VALUES["scheduler"]["extraVolumes"]
    assert PurePosixPath(mount["mountPath"]) in PurePosixPath(of_scheduler()["STEWARD_HOME"]).parents
    assert mount["name"] == volume["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == CLAIM["metadata"]["name"]
    assert VALUES["scheduler"]["securityContexts"]["pod"]["fsGroupChangePolicy"] == "OnRootMismatch"


def test_connections_come_from_secrets_and_only_to_where_tasks_run() -> None:
    connections = {name: source for name, source in of_scheduler().items() if name.startswith("AIRFLOW_CONN_")}
    assert set(connections) == {
        "AIRFLOW_CONN_PULSAR_ADMIN_LOCAL",
        "AIRFLOW_CONN_PULSAR_EVENTS_LOCAL",
        "AIRFLOW_CONN_STEWARD_LEDGER",
    }
    for name, source in connections.items():
        key = name.removeprefix("AIRFLOW_CONN_").lower().replace("_", "-")
        assert source == {"secretKeyRef": {"name": "steward-connections", "key": key}}
        assert f"--from-file={key}" in TEXT
    elsewhere = json.dumps([VALUES["env"], VALUES["secret"]])
    assert "AIRFLOW_CONN" not in elsewhere


def test_no_administrator_whose_password_everybody_knows() -> None:
    """The chart creates no default user, and the head of the values shows how to make each secret key."""
    assert VALUES["createUserJob"]["defaultUser"]["enabled"] is False
    made = re.findall(r"for name in (.+)\n# +do kubectl create secret generic \"airflow-\$name\"", TEXT)
    named = [VALUES[name] for name in ("fernetKeySecretName", "apiSecretKeySecretName", "jwtSecretName")]
    assert named == [f"airflow-{name}" for names in made for name in names.split()]
