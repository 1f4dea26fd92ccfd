"""Profile of one broker's answers becoming rows: functions by their own time."""

from __future__ import annotations

import cProfile
import pstats
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from pulsar_steward.collect.broker import BrokerTask, ReadScope, read_brokers
from pulsar_steward.collect.reading import TableFiles
from pulsar_steward.model.tables import SHARDED
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings

MOST = 12
WAITING = "acquire"
"""Of locks: what is waited for is another thread's."""


def profiled(url: str) -> list[tuple[str, float]]:
    """Functions with their shares of the time, the largest first; what is waited for is left out."""
    profile = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        _read(url, Path(folder, "warm"))
        profile.runcall(_read, url, Path(folder, "profiled"))
    times = {_named(key): figures[2] for key, figures in pstats.Stats(profile).stats.items()}  # type: ignore[attr-defined]  # pstats leaves it out
    known = {name: seconds for name, seconds in times.items() if WAITING not in name}
    total = sum(known.values())
    return [(name, seconds / total) for name, seconds in sorted(known.items(), key=lambda item: -item[1])[:MOST]]


def _read(url: str, folder: Path) -> None:
    policy = Policy()
    settings = AdminSettings(urls=(url,), limits=policy.admin)
    task = BrokerTask(url.partition("://")[2], "local", leader=False)
    with TableFiles(folder, "part.parquet", SHARDED) as files:
        for piece in read_brokers(settings, [task], ReadScope(datetime.now(UTC), policy.collect)):
            files.takes(piece)
        list(files.written())


def _named(key: tuple[str, int, str]) -> str:
    file, line, name = key
    return name if file == "~" else f"{'/'.join(Path(file).parts[-2:])}:{line} {name}"
