"""Identity of people: Airflow's id distinguishes them, and their name is displayed."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.outside_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable


class Person(msgspec.Struct, frozen=True):
    """A user of Airflow.

    Attributes:
        user_id: Airflow's id; with the simple auth manager the user's name, with others often a number.
        name: The name as Airflow shows it.
    """

    user_id: str
    name: str

    def may_be(self, name: str) -> bool:
        """True if a person with this name, and an unknown id, may be this person: then both count as the same."""
        return _folded(name) in _writings(self)


def same_person(one: Person, other: Person) -> bool:
    """True if two users are, or may be, one person: the same id, or names that look alike in print."""
    return not _writings(one).isdisjoint(_writings(other))


def different_people(user_ids: Iterable[str]) -> int:
    """Minimum number of people behind these ids; ids that may belong to one person count once."""
    found: list[Person] = []
    for person in (Person(each, each) for each in user_ids):
        if not any(same_person(person, other) for other in found):
            found.append(person)
    return len(found)


def _writings(person: Person) -> frozenset[str]:
    return frozenset({_folded(person.name), _folded(person.user_id)})


def _folded(name: str) -> str:
    """Normalised name: ignores case, invisible characters, and different encodings of the same letters."""
    return unicodedata.normalize("NFKC", visible(unicodedata.normalize("NFKC", name).casefold()))
