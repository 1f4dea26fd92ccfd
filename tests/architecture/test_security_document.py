"""docs/security.md lists every attack: a later one cannot be forgotten, and none that is gone is claimed."""

from __future__ import annotations

from benchmarks.attacks import BEGIN, DOCUMENT, attacks


def test_every_attack_is_listed() -> None:
    written = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2]
    listed = {line.split(" | ")[0].removeprefix("| ") for line in written.splitlines() if line.startswith("| ")}
    promises = {attack.promise for each in attacks().values() for attack in each}
    assert listed - {"promise"} == promises
    assert all(attack.holds for each in attacks().values() for attack in each)
