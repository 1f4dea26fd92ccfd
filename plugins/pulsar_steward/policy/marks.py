"""YAML reader that records the place of every key, and finds text that YAML silently reads differently than a person.

It finds duplicate keys (YAML drops one of them), and numbers such as ``010`` and ``1:30``, which YAML reads as 8 and
90. It also finds sets, dates and other values without a plain type. The order of a set changes from process to process.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.policy.trouble import Place


_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)(\.[0-9_]*)?(e[-+][0-9]+)?|[-+]?\.[0-9]+|[-+]?\.(inf|nan)", re.IGNORECASE)
"""Numbers that people and YAML 1.1 read alike."""

_OF_YAML = "tag:yaml.org,2002:"

_NUMBERS = (f"{_OF_YAML}int", f"{_OF_YAML}float")

_PLAIN = frozenset(f"{_OF_YAML}{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null", "merge"))
"""Tags of the types that JSON has too, and of ``<<``."""


class Spot(NamedTuple):
    """A place in a file; both numbers from 1."""

    line: int
    column: int

    @classmethod
    def of(cls, mark: yaml.Mark) -> Spot:
        """Converts YAML's own place, which counts from 0."""
        return cls(mark.line + 1, mark.column + 1)


class Marked(NamedTuple):
    """A YAML document.

    Attributes:
        content: Its values.
        root: Its nodes; None if it is empty.
        odd: Places that would silently be read differently than written, with the reason.
    """

    content: Any
    root: yaml.Node | None
    odd: tuple[tuple[Spot, str], ...]

    def spot(self, place: Place, *, key: bool) -> Spot:
        """Position of a key or value in the file, or of its nearest existing parent.

        Args:
            place: The keys from the top down.
            key: True: the position of the key itself; False: the position of its value.
        """
        spot, node = Spot(1, 1) if self.root is None else Spot.of(self.root.start_mark), self.root
        for depth, part in enumerate(place, 1):
            pair = _child(node, part)
            if pair is None:
                break
            spot = Spot.of(pair[0 if key and depth == len(place) else 1].start_mark)
            node = pair[1]
        return spot


def read_yaml(text: str) -> Marked:
    """Reads one document with plain values only.

    Raises:
        yaml.YAMLError: If it is not valid YAML.
        ValueError: If a date or number in it is not valid.
    """
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return Marked(None, None, ())
        odd = tuple(_odd(loader, root, set()))  # constructing merges `<<` into the nodes, so it comes second
        return Marked(loader.construct_document(root), root, odd)
    finally:
        loader.dispose()


def _child(node: yaml.Node | None, part: int | str) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        pairs = (pair for pair in reversed(node.value) if isinstance(pair[0], yaml.ScalarNode))
        return next((pair for pair in pairs if pair[0].value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _odd(loader: yaml.SafeLoader, node: yaml.Node, seen: set[int]) -> Iterator[tuple[Spot, str]]:
    if id(node) in seen:  # an alias, which may even contain itself
        return
    seen.add(id(node))
    if node.tag not in _PLAIN:
        kind = node.tag.removeprefix(_OF_YAML)
        yield (
            Spot.of(node.start_mark),
            f"is a {kind} to YAML: write a list or a mapping, or quotes around it where it is a text",
        )
    if isinstance(node, yaml.MappingNode):
        first: dict[tuple[str, str], Spot] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                spot = Spot.of(key.start_mark)
                before = first.setdefault((key.tag, key.value), spot)
                if before is not spot:
                    yield spot, f"{key.value}: stands twice, first in line {before.line}: one of the two would be lost"
            yield from _odd(loader, key, seen)
            yield from _odd(loader, value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _odd(loader, each, seen)
    elif node.tag in _NUMBERS and not _DECIMAL.fullmatch(node.value):
        number = loader.construct_object(node)
        yield (
            Spot.of(node.start_mark),
            f"{node.value}: is the number {number} to YAML: write {number}, or quotes around it where it is a text",
        )
