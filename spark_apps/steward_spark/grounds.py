"""What a diagnosis rested on, written beside it as `_DIAGNOSED`: while nothing of that changed, it stands."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from steward_spark.place import DIAGNOSED_NOTE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.resources.abc import Traversable

    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Check
    from steward_spark.place import SnapshotPlace

PACKAGES = ("pulsar_steward", "steward_spark")


class Before(msgspec.Struct, frozen=True):
    """An earlier snapshot.

    Attributes:
        name: Of its folder.
        diagnosis: `Diagnosed.diagnosis`; None where it says none: diagnosed by an older version, or a check failed.
    """

    name: str
    diagnosis: str | None


class Grounds(msgspec.Struct, frozen=True):
    """What a diagnosis rests on besides the snapshot's own tables.

    Attributes:
        policy: Digest of the policy, as it is for the cluster.
        code: Digest of Steward's code: more than its version, which stays while somebody works on a check.
        checks: Ids, in order.
        earlier: Earlier snapshots that were given, the newest first.
    """

    policy: str
    code: str
    checks: tuple[str, ...]
    earlier: tuple[Before, ...]


class Diagnosed(msgspec.Struct, frozen=True):
    """The content of `_DIAGNOSED`.

    Attributes:
        diagnosis: Another one for each time that a snapshot is diagnosed, so that later ones notice.
        grounds: What it rests on.
    """

    diagnosis: str
    grounds: Grounds


def grounds_of(policy: Policy, checks: Sequence[Check], earlier: Sequence[SnapshotPlace]) -> Grounds:
    """What a diagnosis would rest on now.

    Args:
        policy: That of the cluster.
        checks: What is looked for.
        earlier: Earlier snapshots, the newest first.
    """
    before = tuple(Before(place.name, said.diagnosis if (said := said_of(place)) else None) for place in earlier)
    return Grounds(policy.digest, code_digest(), tuple(check.info.check_id for check in checks), before)


def stands(place: SnapshotPlace, grounds: Grounds) -> bool:
    """Whether a snapshot's diagnosis is there, whole, and rests on these grounds."""
    said = said_of(place)
    return said is not None and said.grounds == grounds and place.diagnosed()


def said_of(place: SnapshotPlace) -> Diagnosed | None:
    """What a snapshot says of its diagnosis; None where it says nothing that can be read."""
    content = place.note(DIAGNOSED_NOTE)
    try:
        return None if content is None else msgspec.json.decode(content, type=Diagnosed)
    except msgspec.DecodeError:  # cut off, or of another version
        return None


def say(place: SnapshotPlace, grounds: Grounds) -> None:
    """Says that a snapshot is diagnosed, once all of that is written."""
    place.write_note(DIAGNOSED_NOTE, msgspec.json.encode(Diagnosed(uuid4().hex, grounds)))


@cache
def code_digest() -> str:
    """SHA-256 of Steward's own code, names and content; takes some milliseconds."""
    made = hashlib.sha256()
    for package in PACKAGES:
        for name, content in _sources(files(package), package):
            made.update(f"{name} {len(content)}\n".encode())
            made.update(content)
    return made.hexdigest()


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Not by paths, as a package may lie in an archive."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _sources(each, f"{name}/{each.name}")
        elif each.name.endswith(".py"):
            yield f"{name}/{each.name}", each.read_bytes()
