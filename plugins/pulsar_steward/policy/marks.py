"""YAML reader that records the place of every key, and finds duplicate keys, of which YAML would silently drop one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.policy.trouble import Place


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
        twice: Keys that occur twice in one mapping: the second and the first place of each.
    """

    content: Any
    root: yaml.Node | None
    twice: tuple[tuple[str, Spot, Spot], ...]

    def spot(self, place: Place, *, key: bool) -> Spot:
        """Position of a key or value in the file, or of the nearest parent that exists.

        Args:
            place: The keys from the top down.
            key: True: the position of the key itself; False: that of its value.
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
    """Reads one document, of plain values only.

    Raises:
        yaml.YAMLError: If it is not valid YAML.
        ValueError: If a date or number in it is not valid.
    """
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return Marked(None, None, ())
        twice = tuple(_twice(root, set()))  # constructing merges `<<` into the nodes, so it comes second
        return Marked(loader.construct_document(root), root, twice)
    finally:
        loader.dispose()


def _child(node: yaml.Node | None, part: int | str) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        pairs = (pair for pair in reversed(node.value) if isinstance(pair[0], yaml.ScalarNode))
        return next((pair for pair in pairs if pair[0].value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _twice(node: yaml.Node, seen: set[int]) -> Iterator[tuple[str, Spot, Spot]]:
    if id(node) in seen:  # an alias, which may even contain itself
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        first: dict[tuple[str, str], Spot] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                spot = Spot.of(key.start_mark)
                before = first.setdefault((key.tag, key.value), spot)
                if before is not spot:
                    yield key.value, spot, before
            yield from _twice(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _twice(each, seen)
