"""Identity of people: they are told apart by Airflow's id, and shown by their name."""

from __future__ import annotations

import unicodedata

import msgspec


class Person(msgspec.Struct, frozen=True):
    """A user of Airflow.

    Attributes:
        user_id: Airflow's id; with the simple auth manager the user's name, with others often a number.
        name: The name as Airflow shows it.
    """

    user_id: str
    name: str

    def may_be(self, name: str) -> bool:
        """True if somebody of whom only a name is known may be this person: then they count as the same."""
        return _folded(name) in {_folded(self.name), _folded(self.user_id)}


def same_person(one: Person, other: Person) -> bool:
    """True if two users are, or may be, one person: the same id, or names that differ in case and white space only."""
    return one.user_id == other.user_id or other.may_be(one.name) or one.may_be(other.user_id)


def _folded(name: str) -> str:
    """Normalised name: ignores case, white space, and different encodings of the same letters."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())
