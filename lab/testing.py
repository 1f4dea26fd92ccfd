"""For tests that need what may not be on a machine: skip where it is missing, and say why."""

import importlib.util
import os
import shutil
from typing import NoReturn

import pytest

from lab import jars, nginx, prerequisites
from lab.kafka import KAFKA_VERSION
from lab.model import VERSIONS


def need_lab(version: str = VERSIONS[0]) -> None:
    """Skips where a lab cannot run, saying what to install; with ``CI=true`` it fails instead."""
    java_at_least = prerequisites.java_for(version)
    if missing := prerequisites.missing(maven=not jars.fetched(version), java_at_least=java_at_least):
        cannot_run(f"no real Pulsar on this machine: {'; '.join(missing)}")


def need_kafka() -> None:
    """Skips where no Kafka can run, saying what to install; with ``CI=true`` it fails instead."""
    missing = prerequisites.missing(maven=not jars.fetched(KAFKA_VERSION, jars.KAFKA))
    if importlib.util.find_spec("confluent_kafka") is None:
        missing.append("confluent-kafka is not installed: make its environment anew by `make`")
    if missing:
        cannot_run(f"no real Kafka on this machine: {'; '.join(missing)}")


def need_java() -> None:
    """Skips where there is no Java, which Spark runs on; with ``CI=true`` it fails instead."""
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        cannot_run("no Java on this machine: Spark needs version 17 or later")


def need_nginx() -> str:
    """Path of nginx; skips where there is none, or with ``CI=true`` fails instead."""
    program = nginx.installed()
    if program is None:
        cannot_run("no nginx on this machine: install it (Debian: apt-get install nginx-light)")
    return program


def cannot_run(reason: str) -> NoReturn:
    """Skips a test for what this machine lacks; with ``CI=true`` nothing may be lacking, and it fails instead."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
