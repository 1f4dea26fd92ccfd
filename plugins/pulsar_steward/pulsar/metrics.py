"""Reader of Prometheus's text format that parses a stream as it arrives, and only the wanted series.

A broker with 10,000 topics returns 100 MB, and less than 1 % of it is wanted. So only the name of each line is read
first, and only wanted lines are parsed, by Prometheus's own library (docs/decisions/0007-prometheus-text.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from pulsar_steward.pulsar.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.pulsar.settings import AdminSettings


LONGEST_LINE_BYTES = 1 << 20
"""Maximum length of a line in bytes; longer lines are skipped, like lines that cannot be parsed."""


UNPARTITIONED = "-1"
"""Label `partition` of a topic without partitions."""


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One sample: the series' name, its labels and its value, which may be NaN or infinite."""

    series: str
    labels: dict[str, str]
    value: float

    @property
    def topic(self) -> str | None:
        """Full name of the sample's topic; None: it has no topic.

        With `splitTopicAndPartitionLabelInPrometheus`, brokers write the partition's number in a separate label, -1
        for none. Everything else in Pulsar uses the full name.
        """
        topic, partition = self.labels.get("topic"), self.labels.get("partition", UNPARTITIONED)
        return topic if topic is None or partition == UNPARTITIONED else f"{topic}-partition-{partition}"


def endpoint(settings: AdminSettings, base: str) -> Transport:
    """Transport to a server that is no broker (``http://host:port``), with the cluster's limits but no secrets."""
    return Transport(settings.without_secrets((base,)), frozenset({"GET"}))


class Exposition:
    """Metrics of one endpoint while they are read.

    Args:
        pieces: The body, piece by piece.
        most_bytes: Maximum of bytes to read; one piece may exceed it.

    Attributes:
        cut: True if the body was longer than the part that was read.
    """

    def __init__(self, pieces: Iterable[bytes], most_bytes: int) -> None:
        self._pieces = pieces
        self._most_bytes = most_bytes
        self.cut = False

    def samples(self, wanted: Mapping[str, float | None], endings: Sequence[str] = ()) -> Iterator[Sample]:
        """Yields the samples of the wanted series; a line that cannot be parsed is skipped.

        Args:
            wanted: Series by name, with their resting values (such as 0 for a counter of failures) or None. A series
                with a resting value yields its first sample with any value, as this proves that the series is
                exported. After that, it yields only samples with another value.
            endings: Suffixes of further wanted series, for names that contain the names of threads.
        """
        resting = {name.encode(): value for name, value in wanted.items()}
        ends = tuple(ending.encode() for ending in endings)
        told: set[bytes] = set()
        for lines in self._lines():
            for line in lines:
                end = line.find(b"{")
                name = line[:end] if end > 0 else line.partition(b" ")[0]
                if name in resting:
                    if name in told and _rests(line, resting[name]):
                        continue
                    told.add(name)
                elif not name.endswith(ends):
                    continue
                sample = _sample(line)
                if sample is not None:
                    yield sample

    def _lines(self) -> Iterator[list[bytes]]:
        taken, rest, passing = 0, b"", False
        for piece in self._pieces:
            if taken >= self._most_bytes:
                self.cut = True
                return
            taken += len(piece)
            if passing:  # the rest of an overlong line
                _, ended, piece = piece.partition(b"\n")  # noqa: PLW2901 - what is left of it
                passing = not ended
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > LONGEST_LINE_BYTES:
                rest, passing = b"", True
            yield lines
        yield [rest]


def _rests(line: bytes, value: float | None) -> bool:
    if value is None:
        return False
    try:
        return float(line[line.rfind(b" ") :]) == value
    except ValueError:
        return False


def _sample(line: bytes) -> Sample | None:
    try:
        families = list(text_string_to_metric_families(line.decode(errors="replace")))
    except ValueError:
        return None
    told = next((sample for family in families for sample in family.samples), None)
    return None if told is None else Sample(told.name, dict(told.labels), float(told.value))
