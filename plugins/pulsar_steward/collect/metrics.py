"""Prometheus endpoints as Arrow batches of the table `metrics`: of brokers, and of servers named in the policy."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import msgspec

from pulsar_steward.collect.rows import UNFIT, Rows
from pulsar_steward.collect.series import ENDINGS, SERIES, Kind
from pulsar_steward.errors import AdminError
from pulsar_steward.model.tables import METRICS
from pulsar_steward.model.units import MIB
from pulsar_steward.pulsar.metrics import Exposition, Sample, endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.pulsar.settings import AdminSettings

log = logging.getLogger(__name__)


class Metrics(msgspec.Struct, frozen=True):
    """Samples of one endpoint.

    Attributes:
        whole: True: completely read; False: cut off because of its size; None: unreadable.
        samples: The samples to store.
    """

    whole: bool | None
    samples: list[Sample] = []

    def rows(self, source: str, kind: Kind) -> Iterator[TableBatch]:
        """Converts the samples to rows of `metrics`."""
        count, rows = len(self.samples), Rows(METRICS)
        rows.add(
            [source] * count,
            [kind] * count,
            [sample.series for sample in self.samples],
            [sample.topic for sample in self.samples],
            [sample.labels.get("subscription") for sample in self.samples],
            [msgspec.json.encode(sample.labels, order="sorted").decode() for sample in self.samples],
            [sample.value for sample in self.samples],
        )
        yield from rows.rest()


def read_metrics(ask: Callable[[], Generator[bytes]], kind: Kind, most_megabytes: int) -> Metrics:
    """Reads an endpoint; one not read to its end gives no samples, as half of it would look like lower figures.

    Args:
        ask: Returns the body in pieces.
        kind: Kind of server.
        most_megabytes: Maximum size to read, in megabytes.
    """
    try:
        with closing(ask()) as pieces:
            exposition = Exposition(pieces, most_megabytes * MIB)
            samples = list(exposition.samples(SERIES[kind], ENDINGS[kind]))
    except (AdminError, *UNFIT) as error:
        log.warning("no metrics: %s", error)
        return Metrics(None)
    return Metrics(not exposition.cut, samples)


def read_endpoint(settings: AdminSettings, named: str, most_megabytes: int) -> Iterator[TableBatch]:
    """Reads the metrics of a bookie or ZooKeeper, and yields rows of `metrics`.

    Args:
        settings: Time limits; the token is not sent.
        named: ``kind=url``, as in the policy's `collect.metrics_urls`.
        most_megabytes: Maximum size to read, in megabytes.
    """
    kind, _, url = named.partition("=")
    parts = urlsplit(url)
    with endpoint(settings, f"{parts.scheme}://{parts.netloc}") as transport:
        who = cast("Kind", kind)
        metrics = read_metrics(lambda: transport.pieces(parts.path or "/metrics"), who, most_megabytes)
        yield from metrics.rows(parts.netloc, who)
