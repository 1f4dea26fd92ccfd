"""Guards of a namespace's persistence: no fewer copies, and no more bookies than take writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.facts.protocol import Bookies
from pulsar_steward.facts.unknown import BOOKIES_UNKNOWN
from pulsar_steward.guards.evaluate import guards_of
from pulsar_steward.guards.settings import BookiesEnough, CopiesKept
from pulsar_steward.model.setting import Persistence, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.builders import a_look, a_policy, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step

THREE = Persistence.of((3, 2, 2), 1.0)


def quorums(*numbers: int) -> Persistence:
    """A persistence with these E, Qw and Qa."""
    ensemble, write, ack = numbers
    return Persistence.of((ensemble, write, ack), 1.0)


def step(after: Persistence | None, before: Persistence | None = THREE, **fields: Any) -> Step:
    """A step that sets persistence; `inherited` is what the brokers' default is."""
    inherited = fields.pop("inherited", msgspec.UNSET)
    name = SettingName.PERSISTENCE
    change = ChangeSetting(namespace="shop/orders", name=name, before=before, after=after, inherited=inherited)
    return a_step(change, **fields)


@pytest.mark.parametrize(
    ("made", "passed", "words"),
    [
        (step(Persistence.of((3, 2, 2), 0.1)), True, "no fewer copies than now"),
        (step(quorums(2, 2, 2)), True, "no fewer copies"),
        (step(quorums(3, 3, 2)), True, "no fewer copies"),
        (step(quorums(3, 1, 1)), False, "are fewer copies than E 3, Qw 2, Qa 2 (policy key guards.fewer_copies)"),
        (step(quorums(3, 2, 1)), False, "fewer copies"),
        (step(quorums(2, 3, 2)), False, "E has to be at least Qw"),
        (step(quorums(3, 2, 3)), False, "Qw at least Qa"),
        (step(None, inherited=quorums(2, 2, 2)), True, "no fewer copies"),
        (step(None, inherited=quorums(1, 1, 1)), False, "fewer copies"),
        (step(None), False, "is not known"),
        (step(quorums(9, 9, 9), None), False, "is not known"),
    ],
    ids=[
        "rate",
        "striping",
        "more",
        "Qw",
        "Qa",
        "E<Qw",
        "Qw<Qa",
        "to default",
        "to fewer",
        "unknown",
        "unknown before",
    ],
)
def test_copies_become_no_fewer(made: Step, *, passed: bool, words: str) -> None:
    """Neither Qw nor Qa is lowered; what applies before or after has to be known."""
    result = CopiesKept().check(made, *a_look())
    assert (result.passed, result.guard) == (passed, "copies_kept")
    assert words in result.reason


def test_fewer_copies_are_permitted_by_the_policy_alone() -> None:
    """A policy may permit fewer copies, and still no quorums that brokers refuse."""
    permitting = a_policy(guards={"fewer_copies": True})
    assert CopiesKept().check(step(quorums(3, 1, 1)), *a_look(permitting)).passed
    assert not CopiesKept().check(step(quorums(2, 3, 1)), *a_look(permitting)).passed


@pytest.mark.parametrize(
    ("made", "bookies", "passed", "words"),
    [
        (step(Persistence.of((3, 2, 2), 0.1)), Bookies(listed=1), True, "E 3 and Qw 2 stay as they are"),
        (step(quorums(2, 2, 2)), Bookies(listed=2), True, "E 2 of 2 bookies that may take writes"),
        (step(quorums(2, 2, 2)), Bookies(listed=2, writable=1, read_only=1), False, "no ledger could be made"),
        (step(quorums(2, 2, 2)), Bookies(listed=1), False, "no ledger could be made"),
        (step(quorums(4, 2, 2)), Bookies(listed=4, writable=3), False, "only 3 of them are known to"),
        (step(quorums(4, 2, 2)), Bookies(listed=4, writable=4), True, "E 4 of 4 bookies"),
        (step(quorums(3, 3, 2)), Bookies(listed=4), False, "only 0 of them are known to"),
        (step(None), Bookies(listed=4), False, "is not known"),
        (step(quorums(2, 2, 2)), BOOKIES_UNKNOWN, False, "how many bookies there are is not known"),
    ],
    ids=["rate", "lower", "read-only", "too few", "raised", "known", "more copies", "unknown", "not told"],
)
def test_no_more_bookies_than_take_writes(made: Step, bookies: object, *, passed: bool, words: str) -> None:
    """A lower E needs bookies that may be writable; a higher E or Qw needs bookies that are known to be."""
    result = BookiesEnough().check(made, *a_look(bookies=bookies))
    assert (result.passed, result.guard) == (passed, "bookies_enough")
    assert words in result.reason


def test_the_way_back_is_guarded_too_and_other_settings_pass() -> None:
    """The way back may not lower copies either; other settings change no copies."""
    both = {"copies_kept", "bookies_enough"}
    assert both <= {guard.name for guard in guards_of(step(THREE, undoes="older/b1.s01"))}
    other = a_step(ChangeSetting(namespace="a/b", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60)))
    assert all(guard().check(other, *a_look(bookies=None)).passed for guard in (CopiesKept, BookiesEnough))
