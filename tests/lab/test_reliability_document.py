"""The document of `benchmarks.chaos`: what other versions of Pulsar came to stays when it is written again."""

from __future__ import annotations

from benchmarks.chaos.document import Chaos, document

NOTHING = Chaos(seed=1, runs=(), checkups=(), date="2026-01-01", versions={})


def test_a_line_of_another_version_stays() -> None:
    whole = document(NOTHING, None, "")
    other = document(NOTHING, "5.0.1", whole)
    assert other.removeprefix(whole) == (
        "\n## On other versions\n\n- Pulsar 5.0.1, 2026-01-01, seed 1: 0 runs, 0 outcomes, 0 violations;"
        " 0 changing calls.\n"
    )
    assert document(NOTHING, None, other) == document(NOTHING, "5.0.1", other) == other
