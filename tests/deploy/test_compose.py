"""Promises of docker-compose.yml: the demo's own settings, pinned versions, health checks, no secret."""

import json
import re
from importlib.metadata import distribution, version
from importlib.resources import files
from pathlib import Path
from string import Template
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema.validators import validator_for
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from hatch_build import FILES
from lab.airflow.settings import AirflowSpec, connection_to, environment
from lab.model import CLUSTER, LabSpec
from lab.settings import TEMPLATES, parsed

PROJECT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (PROJECT / "Dockerfile").read_text(encoding="utf-8")

OURS = "pulsar-steward:0.2.0"
ONE_SHOT = {"airflow-init", "pulsar-init"}
FIRST = {"postgres", "spark-master", "zookeeper"}
"""Services that start at once, as they need no other."""
AIRFLOW = [name for name in SERVICES if name.startswith("airflow-")]
BROKERS = [name for name in SERVICES if name.startswith("broker-")]
PREFIX = "PULSAR_PREFIX_"
TARGET: Any = SimpleNamespace(
    admin_urls=tuple(f"http://{broker}:8080" for broker in BROKERS),
    service_url="pulsar://" + ",".join(f"{broker}:6650" for broker in BROKERS),
    token=None,
)
VARIABLE = re.compile(r"\$\{(?P<name>\w+):(?P<kind>[?-])(?P<rest>[^}]*)\}")
SECRET = re.compile(r"(PASSWORD|SECRET|SECRET_KEY|FERNET_KEY|TOKEN)$")
"""Ends of names of variables whose values are secrets."""
DATABASE = "postgresql+psycopg://steward:<POSTGRES_PASSWORD>@postgres:5432/airflow"


class Setting(NamedTuple):
    """A setting that the compose file has otherwise than the demo."""

    value: str
    reason: str


AIRFLOW_DIFFERENCES = {
    "AIRFLOW_HOME": Setting("/var/lib/airflow", "a volume"),
    "AIRFLOW__CORE__DAGS_FOLDER": Setting("/opt/steward/dags", "where the image has them"),
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": Setting(
        "http://airflow-api-server:8080/execution/", "tasks run in another container than the API server"
    ),
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": Setting(
        "/var/lib/airflow/passwords.json", "a volume, so that the passwords outlive the container"
    ),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": Setting(DATABASE, "a container of its own"),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": Setting(DATABASE, "a container of its own"),
    "AIRFLOW_CONN_STEWARD_LEDGER": Setting(
        '{"conn_type": "postgres", "host": "postgres", "port": 5432, "schema": "steward", "login": "steward", '
        '"password": "<POSTGRES_PASSWORD>"}',
        "a container of its own",
    ),
    "AIRFLOW__API__HOST": Setting("0.0.0.0", "inside the container; published on loopback only"),  # noqa: S104 - as said
    "AIRFLOW__CORE__FERNET_KEY": Setting("<FERNET_KEY>", "several containers share it"),
    "AIRFLOW__API__SECRET_KEY": Setting("<API_SECRET_KEY>", "several containers share it"),
    "AIRFLOW__API_AUTH__JWT_SECRET": Setting("<JWT_SECRET>", "several containers share it"),
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER": Setting("/var/lib/airflow/logs", "a volume: the API server shows them"),
    "STEWARD_HOME": Setting("/var/lib/steward", "a volume"),
    "AIRFLOW_CONN_SPARK_DEFAULT": Setting(
        '{"conn_type": "spark", "host": "spark://spark-master", "port": 7077}', "Spark has a worker of its own"
    ),
}
AIRFLOW_OMISSIONS = {
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "programs that answer wait for the scheduler's beats; people do not"
}
AIRFLOW_ADDITIONS = {
    "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": Setting("True", "the health check of the container asks it"),
    "STEWARD_SNAPSHOTS": Setting("/var/lib/snapshots", "a volume that Spark's worker shares"),
}
BROKER_ADDRESSES = {
    "metadataStoreUrl": "zk:zookeeper:2181",
    "configurationMetadataStoreUrl": "zk:zookeeper:2181",
    "brokerServicePort": "6650",
    "webServicePort": "8080",
    "bindAddress": "0.0.0.0",  # noqa: S104 - inside the container
    "advertisedAddress": "{broker}",
}
BROKER_OMISSIONS = {"allowLoopback": "a container has an address other than loopback"}


def resolved(text: str) -> str:
    """A value as Compose passes it on: defaults filled in, and each required variable as its name in brackets."""
    return VARIABLE.sub(lambda match: f"<{match['name']}>" if match["kind"] == "?" else match["rest"], text)


def of_service(name: str) -> dict[str, str]:
    """The environment that a service's process gets."""
    return {key: resolved(value) for key, value in SERVICES[name].get("environment", {}).items()}


def decoded(environment: dict[str, str]) -> dict[str, Any]:
    """Variables with JSON decoded, so that two documents compare by what they say."""
    return {key: json.loads(value) if value.startswith("{") else value for key, value in environment.items()}


def demo_settings() -> dict[str, str]:
    """Settings that the demo runs its Airflow with."""
    server = "postgresql+psycopg://steward:made-up@127.0.0.1:5432"
    spec = AirflowSpec(home=Path("/demo"), port=8080, database=f"{server}/postgres", ledger=f"{server}/steward")
    whole = environment(spec)
    ours = {key: value for key, value in whole.items() if key.startswith(("AIRFLOW", "STEWARD"))}
    return ours | {"STEWARD_CLUSTER": CLUSTER} | connection_to(TARGET)


def demo_broker_settings() -> dict[str, str]:
    """A broker's settings in the demo, its addresses still as ``${...}``."""
    text = (TEMPLATES / "broker.conf").read_text(encoding="utf-8")
    return parsed(Template(text).safe_substitute(cluster=CLUSTER))


def mounts(name: str) -> dict[str, str]:
    """Named volume to its place in the container."""
    return dict(volume.split(":") for volume in SERVICES[name].get("volumes", []))


def test_the_file_follows_the_compose_specification() -> None:
    text = files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    assert [error.message for error in validator_for(schema)(schema).iter_errors(COMPOSE)] == []


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    """Every image names a version of at least two numbers, and none is ``latest``."""
    _, _, tag = SERVICES[name]["image"].partition(":")
    assert re.match(r"\d+\.\d+", tag)


@pytest.mark.parametrize("name", SERVICES)
def test_long_running_services_are_checked_and_restarted(name: str) -> None:
    service = SERVICES[name]
    assert ("healthcheck" in service) == (name not in ONE_SHOT)
    assert service["restart"] == ("no" if name in ONE_SHOT else "unless-stopped")


@pytest.mark.parametrize("name", SERVICES)
def test_dependencies_exist_and_are_waited_for(name: str) -> None:
    dependencies = SERVICES[name].get("depends_on", {})
    assert bool(dependencies) == (name not in FIRST)
    for other, how in dependencies.items():
        assert other in SERVICES
        done = "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
        assert how["condition"] == done


def test_ports_are_published_on_loopback_only() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)
    hosts = [port.rpartition(":")[0] for port in published]
    assert len(hosts) == len(set(hosts))


def secrets_in(text: str) -> list[str]:
    """Passwords, keys and tokens within a URL, a connection, the options of a command or an SQL script."""
    in_urls = re.findall(r"://[^/@]*?:(?!//)(.+?)@", text)
    in_json = re.findall(r'"password": "(.*?)"', text)
    in_options = re.findall(r"--[\w-]*(?:password|secret|key|token)[ =](\$\{[^}]*\}|\S+)", text)
    in_sql = re.findall(r"(?i:\bpassword) '(.*?)'", text)
    return in_urls + in_json + in_options + in_sql


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://steward:hidden@postgres/airflow",
        '{"login": "steward", "password": "hidden"}',
        "bin/pulsar broker --token hidden",
        "steward pages --secret-key=hidden --port 80",
        "CREATE USER steward WITH PASSWORD 'hidden';",
    ],
    ids=["url", "json", "option", "option with =", "sql"],
)
def test_secrets_are_seen_wherever_they_stand(text: str) -> None:
    """A secret within a value, a command or a script is found."""
    assert secrets_in(text) == ["hidden"]


@pytest.mark.parametrize("name", [*SERVICES, *COMPOSE["configs"]])
def test_no_secret_is_written_down(name: str) -> None:
    """A password, key or token in an environment, a command or a file is a variable without a default."""
    service = SERVICES.get(name, {})
    environment = service.get("environment", {})
    texts = [
        *environment.values(),
        " ".join(service.get("command", [])),
        COMPOSE["configs"].get(name, {}).get("content", ""),
    ]
    secrets = [value for key, value in environment.items() if SECRET.search(key)]
    secrets += [secret for text in texts for secret in secrets_in(text)]
    assert bool(secrets) == (name in {"postgres", *AIRFLOW})
    assert [secret for secret in secrets if not re.fullmatch(r"\$\{\w+:\?[^}]+\}", secret)] == []


def test_the_secrets_asked_for_are_the_ones_explained() -> None:
    text = (PROJECT / "docker-compose.yml").read_text(encoding="utf-8")
    needed = {match["name"] for match in VARIABLE.finditer(text) if match["kind"] == "?"}
    explained = re.search(r"for name in (.*)", text)
    assert explained
    assert needed == set(explained[1].split())


@pytest.mark.parametrize("name", AIRFLOW)
def test_airflow_has_the_settings_of_the_demo(name: str) -> None:
    kept = {key: value for key, value in demo_settings().items() if key not in AIRFLOW_OMISSIONS}
    others = {key: setting.value for key, setting in (AIRFLOW_DIFFERENCES | AIRFLOW_ADDITIONS).items()}
    assert decoded(of_service(name)) == decoded(kept | others)


def test_the_differences_from_the_demo_are_differences() -> None:
    demo, brokers = demo_settings(), demo_broker_settings()
    assert all(key in demo and demo[key] != setting.value for key, setting in AIRFLOW_DIFFERENCES.items())
    assert demo.keys().isdisjoint(AIRFLOW_ADDITIONS)
    assert demo.keys() >= AIRFLOW_OMISSIONS.keys()
    assert all(brokers[key].startswith(("${", "zk:${")) for key in BROKER_ADDRESSES)
    assert brokers.keys() >= BROKER_OMISSIONS.keys()


def test_airflow_knows_the_settings() -> None:
    template = Path(str(distribution("apache-airflow-core").locate_file("airflow/config_templates/config.yml")))
    sections = yaml.load(template.read_text(encoding="utf-8"), yaml.CSafeLoader)
    known = {f"AIRFLOW__{name}__{key}".upper() for name, section in sections.items() for key in section["options"]}
    assert {key for key in of_service("airflow-init") if key.startswith("AIRFLOW__")} <= known


def test_the_databases_drivers_are_installed() -> None:
    here = of_service("airflow-init")
    create_engine(here["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    create_async_engine(here["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC"])


def test_both_databases_are_made() -> None:
    postgres = SERVICES["postgres"]
    [script] = postgres["configs"]
    assert script["target"].startswith("/docker-entrypoint-initdb.d/")
    made = re.findall(r"CREATE DATABASE (\w+);", COMPOSE["configs"][script["source"]]["content"])
    ledger = json.loads(of_service("airflow-init")["AIRFLOW_CONN_STEWARD_LEDGER"])
    assert [postgres["environment"]["POSTGRES_DB"], *made] == ["airflow", ledger["schema"]]


@pytest.mark.parametrize("name", BROKERS)
def test_brokers_have_the_settings_of_the_demo(name: str) -> None:
    here = {key.removeprefix(PREFIX): value for key, value in of_service(name).items() if key.startswith(PREFIX)}
    kept = {key: value for key, value in demo_broker_settings().items() if key not in BROKER_OMISSIONS}
    addresses = {key: value.format(broker=name) for key, value in BROKER_ADDRESSES.items()}
    assert here == kept | addresses


def test_the_clusters_metadata_is_the_demos() -> None:
    words = SERVICES["pulsar-init"]["command"]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    spec = LabSpec(name="demo")
    assert len(BROKERS) == spec.brokers
    assert {SERVICES[name]["image"] for name in (*BROKERS, "bookie")} == {f"apachepulsar/pulsar:{spec.pulsar_version}"}
    assert options["--cluster"] == CLUSTER
    assert options["--initial-num-transaction-coordinators"] == str(spec.coordinators)
    assert options["--broker-service-url"] == TARGET.service_url
    stores = {options["--metadata-store"], options["--configuration-metadata-store"]}
    assert stores == {BROKER_ADDRESSES["metadataStoreUrl"]}


def test_spark_is_where_the_connection_says() -> None:
    connection = json.loads(of_service("airflow-scheduler")["AIRFLOW_CONN_SPARK_DEFAULT"])
    master = SERVICES["spark-master"]["command"]
    assert connection["host"] == f"spark://{master[master.index('--host') + 1]}"
    assert connection["port"] == int(master[master.index("--port") + 1])
    assert SERVICES["spark-worker"]["command"][-1] == f"{connection['host']}:{connection['port']}"


def test_the_worker_sees_the_snapshots() -> None:
    """Driver and executors find the snapshots in the same volume at the same place."""
    place = of_service("airflow-scheduler")["STEWARD_SNAPSHOTS"]
    assert mounts("spark-worker") == {"snapshots": place}
    assert mounts("airflow-scheduler")["snapshots"] == place


def test_volumes_are_named() -> None:
    """Every volume is declared and used, so that what is kept outlives the containers."""
    assert {volume for name in SERVICES for volume in mounts(name)} == COMPOSE["volumes"].keys()


def test_the_image_is_built_once() -> None:
    users = [name for name, service in SERVICES.items() if service["image"] == OURS]
    assert users == [*AIRFLOW, "spark-master", "spark-worker"]
    assert [name for name, service in SERVICES.items() if "build" in service] == ["airflow-init"]


def test_the_image_is_built_from_what_is_there() -> None:
    ignore = (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = [line.removeprefix("!") for line in ignore if line.startswith("!")]
    mapped = [path for path in FILES if not any(path == each or path.startswith(f"{each}/") for each in let_through)]
    assert "*" in ignore
    assert all((PROJECT / each).exists() for each in let_through)
    assert mapped == []
    assert {"requirements.lock", "pyproject.toml", "hatch_build.py", "docs/package.md", "LICENSE"} <= set(let_through)
    sources = re.findall(r"^COPY (?:--\S+ )*(\S+) \S+$", DOCKERFILE, re.MULTILINE)
    assert sources == ["requirements.lock", ".", "/opt/steward/wheel"]


def test_the_image_is_airflows_pinned_and_unprivileged() -> None:
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == [
        f"apache/airflow:slim-{version('apache-airflow')}-python3.11",
        "locked",
        "locked",
    ]
    assert "--require-hashes --no-deps --requirement" in DOCKERFILE
    assert "pip wheel --no-cache-dir --no-deps --no-build-isolation" in DOCKERFILE
    assert re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE) == ["root", "airflow"]
    assert DOCKERFILE.index("USER airflow") < DOCKERFILE.index("COPY")
    places = {
        place for name, service in SERVICES.items() if service["image"] == OURS for place in mounts(name).values()
    }
    assert f"install --directory --mode=0700 --owner=airflow --group=0 {' '.join(sorted(places))} " in DOCKERFILE


def test_the_image_installs_the_wheel_and_the_dags() -> None:
    assert "pip install --no-cache-dir --no-deps /opt/steward/wheel/*.whl" in DOCKERFILE
    folder = of_service("airflow-init")["AIRFLOW__CORE__DAGS_FOLDER"]
    assert f"steward airflow install {folder}\n" in DOCKERFILE
    assert f"install --directory --owner=airflow --group=0 {Path(folder).parent} {folder}\n" in DOCKERFILE


def test_programs_of_spark_are_run_as_they_stand() -> None:
    others = {name for name, service in SERVICES.items() if service["image"] == OURS} - set(AIRFLOW)
    assert [SERVICES[name]["entrypoint"] for name in others] == [["/usr/bin/dumb-init", "--"]] * len(others)
    assert all(SERVICES[name]["command"][0] == "airflow" for name in AIRFLOW)
