"""Who is who: people are told apart by the id that Airflow gives them, and their name is what is shown."""

from __future__ import annotations

import unicodedata

import msgspec


class Person(msgspec.Struct, frozen=True):
    """A user of Airflow.

    Attributes:
        user_id: Airflow's id; by the simple auth manager the user's name, by others often a number.
        name: As Airflow shows it.
    """

    user_id: str
    name: str

    def may_be(self, name: str) -> bool:
        """Whether somebody of whom only a name is known may be this person: then they are taken for the same."""
        return _folded(name) in {_folded(self.name), _folded(self.user_id)}


def same_person(one: Person, other: Person) -> bool:
    """Whether two users are, or may be, one person: the same id, or names that differ in case and white space only."""
    return one.user_id == other.user_id or other.may_be(one.name) or one.may_be(other.user_id)


def _folded(name: str) -> str:
    """A name without what makes no other person: case, white space, other ways to write the same letters."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())
