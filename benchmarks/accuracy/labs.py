"""One lab at a time: scenes with the same settings share it, and one that needs its own gets it."""

from __future__ import annotations

import contextlib
from itertools import count
from typing import TYPE_CHECKING

from lab.faults.real.ground import COMMON_SETTINGS
from lab.model import VERSIONS
from lab.pool import LabPool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from benchmarks.accuracy.scenes import Scene
    from lab.cluster import Lab
    from lab.kafka.cluster import KafkaLab


class Labs:
    """Labs as scenes need them, one at a time; use it in a ``with`` statement.

    Args:
        home: The folder of the labs.
        say: Told what happens, a line at a time.
        pulsar_version: Of the brokers.
    """

    def __init__(self, home: Path, say: Callable[[str], None], pulsar_version: str = VERSIONS[0]) -> None:
        self._pool = LabPool(home, progress=say)
        self._home, self._numbers = home, count(1)
        self._of_kafka = contextlib.ExitStack()
        self._kafka: KafkaLab | None = None
        self._say = say
        self._pulsar_version = pulsar_version

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def lab_for(self, scene: Scene) -> Lab:
        """A running lab with the scene's settings: the one that runs, if it will do, or a new one."""
        if scene.own_lab or self._kafka is not None:
            self.end()
        self._say(f"a lab with {', '.join(f'{key}={value}' for key, value in scene.settings) or 'no further settings'}")
        bookies, settings = scene.bookies
        return self._pool.lab(
            pulsar_version=self._pulsar_version,
            broker_settings=dict(COMMON_SETTINGS) | dict(scene.settings),
            bookies=bookies,
            bookie_settings=settings,
        )

    def kafka(self) -> KafkaLab:
        """The Kafka cluster, which is started if it does not run."""
        from lab.kafka.cluster import running_kafka  # noqa: PLC0415 - needs confluent-kafka

        if self._kafka is None:
            self.end()
            home = self._home / f"kafka-{next(self._numbers)}"
            home.mkdir(parents=True)
            self._kafka = self._of_kafka.enter_context(running_kafka(home, self._say))
        return self._kafka

    def done_with(self, scene: Scene) -> None:
        """Ends the lab if it was the scene's own."""
        if scene.own_lab:
            self.end()

    def end(self) -> None:
        """Ends the lab that runs, if one does."""
        self._pool.close()
        self._kafka = None
        self._of_kafka.close()
