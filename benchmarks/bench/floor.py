"""The floor: the same documents fetched, decoded by msgspec and written by pyarrow, and nothing else.

``python -m benchmarks.bench.floor OUT URL...``, in as many processes as there are cores.
"""

from __future__ import annotations

import os
import sys
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bench.figures import Meter, told
from pulsar_steward.pulsar.statistics import PATH, TopicStatistics

_DOCUMENT = msgspec.json.Decoder(dict[str, dict[str, dict[str, dict[str, TopicStatistics]]]])


def fetched(task: tuple[str, str]) -> int:
    """Fetches one broker's statistics, and writes a row for each topic; returns how many."""
    url, out = task
    with urllib.request.urlopen(url + PATH) as answer:  # noqa: S310 - the benchmark's own simulator
        document = _DOCUMENT.decode(answer.read())
    names: list[str] = []
    figures: list[TopicStatistics] = []
    for bundles in document.values():
        for domains in bundles.values():
            for topics in domains.values():
                names += topics.keys()
                figures += topics.values()
    columns = {
        "topic": pa.array(names),
        "producers": pa.array([each.producer_count for each in figures]),
        "consumers": pa.array([each.consumer_count for each in figures]),
        "rate_in": pa.array([each.msg_rate_in for each in figures]),
        "rate_out": pa.array([each.msg_rate_out for each in figures]),
        "storage": pa.array([each.storage_size or 0 for each in figures]),
        "backlog": pa.array([each.backlog_size or 0 for each in figures]),
    }
    pq.write_table(pa.table(columns), Path(out) / f"{url.rpartition(':')[2]}.parquet", compression="zstd")
    return len(names)


def main(out: str, *urls: str) -> None:
    """Fetches all brokers'."""
    Path(out).mkdir(parents=True)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork")) as pool:
        list(pool.map(abs, range(8)))  # the processes are there
        meter = Meter()
        topics = sum(pool.map(fetched, [(url, out) for url in urls]))
        figures = meter.figures("topics", topics)
    told(figures)


if __name__ == "__main__":
    main(*sys.argv[1:])
