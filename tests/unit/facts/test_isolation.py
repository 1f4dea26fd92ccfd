"""Load of a broker, from its own metrics: what it does not tell is not known, and heartbeats do not count."""

from __future__ import annotations

from pulsar_steward.facts.isolation import Isolation, LoadOfBroker, load_of
from pulsar_steward.facts.room import Usage
from tests.cases import cases

NAN = float("nan")
TOPICS, IN, OUT = "pulsar_topics_count", "pulsar_throughput_in", "pulsar_throughput_out"
CPU, MEMORY = ("pulsar_lb_cpu_usage", "", 20.0), ("pulsar_lb_directMemory_usage", "", 5.0)
BUSY = [
    (TOPICS, "a/b", 3.0),
    (TOPICS, "pulsar/10.0.0.1:8080", 1.0),
    (IN, "a/b", 10.0),
    (IN, "a/b", 20.0),
    (OUT, "a/b", 5.0),
    (OUT, "pulsar/10.0.0.1:8080", 1000.0),
    CPU,
    MEMORY,
]
USED = Usage(cpu=20.0, direct_memory=5.0)


@cases(
    "samples, load",
    ("all of it", BUSY, LoadOfBroker(topics={"a/b": 3}, bytes={"a/b": 35.0}, used=USED)),
    (
        "an idle broker",
        [("pulsar_broker_topics_count", "", 0.0), CPU, MEMORY],
        LoadOfBroker(topics={}, used=USED),
    ),
    ("nothing", [], LoadOfBroker()),
    ("no topics", [each for each in BUSY if each[0] != TOPICS], LoadOfBroker(bytes={"a/b": 35.0}, used=USED)),
    ("no throughput out", [each for each in BUSY if each[0] != OUT], LoadOfBroker(topics={"a/b": 3}, used=USED)),
    (
        "no numbers",
        [(TOPICS, "a/b", NAN), (IN, "a/b", NAN), (OUT, "a/b", 1.0), ("pulsar_lb_cpu_usage", "", NAN), MEMORY],
        LoadOfBroker(used=Usage(direct_memory=5.0)),
    ),
)
def test_load_of_a_broker(samples: list[tuple[str, str, float]], load: LoadOfBroker) -> None:
    """Figures that a broker does not export, or that are no numbers, are not reported; 0 is what it says is 0."""
    assert load_of(samples) == load


def test_a_broker_that_does_not_report_its_cpu_may_be_the_busiest() -> None:
    """Unknown is not zero: its loss is looked at."""
    loads = {"a": LoadOfBroker(topics={"a/b": 3}, used=USED), "b": LoadOfBroker(topics={"a/b": 1})}
    assert Isolation(loads=loads).busiest(loads) == "b"
    loads["b"] = LoadOfBroker(topics={"a/b": 1}, used=Usage(cpu=19.0))
    assert Isolation(loads=loads).busiest(loads) == "a"
