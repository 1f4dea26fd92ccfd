"""Questions to the Airflow of this environment, in a process of its own: this one imports no Airflow."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.runtime.installed_airflow import installed_airflow

AIRFLOW_SECONDS = 120

_ANSWERS = "pulsar_steward.orchestration.airflow_answers"

T = TypeVar("T")


def ask_airflow(subject: str, question: object, kind: type[T], seconds: float = AIRFLOW_SECONDS) -> T | None:
    """Answer of `orchestration.airflow_answers` on a subject; None: no Airflow is here, or it gives none."""
    if installed_airflow() is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - a module of this package, with fixed arguments
            [sys.executable, "-W", "ignore", "-m", _ANSWERS, subject],
            input=msgspec.json.encode(question),
            capture_output=True,
            timeout=seconds,
            check=True,
        )
        return decode(done.stdout.strip().rpartition(b"\n")[2], kind)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return None


def airflow_is_set_up() -> bool:
    """True if something here says where Airflow's database is: without that its first import would make a new one."""
    named = os.environ.get("AIRFLOW_CONFIG")
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    has_file = (Path(named) if named else home / "airflow.cfg").is_file()
    return has_file or any(name.startswith("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN") for name in os.environ)
