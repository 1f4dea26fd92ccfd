"""Reading Prometheus's text format."""

from __future__ import annotations

import math

import pytest

from pulsar_steward.pulsar.metrics import Exposition, Sample

TEXT = rb"""# TYPE jvm_threads_current gauge
jvm_threads_current{cluster="local"} 73.0
jvm_threads_current_daemon{cluster="local"} 70.0
# TYPE pulsar_delayed gauge
pulsar_delayed{cluster="local",topic="a"} 0
pulsar_delayed{cluster="local",topic="b"} 0.0
pulsar_delayed{cluster="local",topic="c"} 7
pulsar_delayed_other{cluster="local"} 9
pulsar_lookup{cluster="local",quantile="1.0"} -Inf
pulsar_ml{cluster="local", namespace="acme/\"x\\n\"", quantile="0.0_0.5"} 1.5E3
up 1 1700000000000
uptime 5
broken{cluster="local" 4
pulsar_nan NaN
"""


def read(text: bytes, wanted: dict[str, float | None], piece: int = 7, most: int = 10_000) -> list[Sample]:
    """The samples of a text that comes in small pieces."""
    return list(Exposition((text[at : at + piece] for at in range(0, len(text), piece)), most).samples(wanted))


@pytest.mark.parametrize("piece", [1, 7, 64, 10_000])
def test_samples_are_read_whatever_pieces_they_come_in(piece: int) -> None:
    """Samples of the wanted names alone are read from pieces of any size, also with escaped labels or a time."""
    found = read(TEXT, {"jvm_threads_current": None, "pulsar_ml": None, "up": None, "pulsar_lookup": None}, piece)

    assert found == [
        Sample("jvm_threads_current", {"cluster": "local"}, 73.0),
        Sample("pulsar_lookup", {"cluster": "local", "quantile": "1.0"}, -math.inf),
        Sample("pulsar_ml", {"cluster": "local", "namespace": 'acme/"x\\n"', "quantile": "0.0_0.5"}, 1500.0),
        Sample("up", {}, 1.0),
    ]


def test_of_what_rests_the_first_and_all_that_do_not_rest_are_kept() -> None:
    """Of the samples with the resting value only the first is kept; all samples with other values are kept."""
    assert [sample.labels["topic"] for sample in read(TEXT, {"pulsar_delayed": 0})] == ["a", "c"]
    assert [sample.labels["topic"] for sample in read(TEXT, {"pulsar_delayed": None})] == ["a", "b", "c"]
    assert read(TEXT, {"pulsar_no_such": 0}) == []


def test_series_whose_names_hold_a_thread_are_known_by_their_endings() -> None:
    """A series is read if its name has a wanted ending, and not if it only starts like a wanted one or is invalid."""
    text = b"# TYPE ml_t-1_queue gauge\nml_t-1_queue 0\nml_t_2_queue 3\nml_t_2_queue_total 4\n"

    samples = Exposition([text], len(text)).samples({"ml_t_2": None}, endings=("_queue",))

    assert [(sample.series, sample.value) for sample in samples] == [("ml_t_2_queue", 3.0)]


def test_a_line_that_cannot_be_read_is_passed_over() -> None:
    """A line that cannot be parsed is skipped, and the value `NaN` of another line is read."""
    (found,) = read(TEXT, {"broken": None, "pulsar_nan": None})

    assert math.isnan(found.value)


def test_more_than_may_be_read_is_cut_and_said() -> None:
    """A text over the size limit is marked as cut, and the samples that were read until then are kept."""
    exposition = Exposition(iter([b"a 1\nb", b" 2\nc 3\n", b"d 4\n"]), 6)

    assert [sample.series for sample in exposition.samples(dict.fromkeys("abcd"))] == ["a", "b", "c"]
    assert exposition.cut


def test_a_text_of_just_the_size_is_whole() -> None:
    """A text of exactly the size limit is read whole, also if its last line has no line end."""
    exposition = Exposition(iter([b"a 1\n", b"b 2"]), 7)

    assert [sample.series for sample in exposition.samples({"a": None, "b": None})] == ["a", "b"]
    assert not exposition.cut
