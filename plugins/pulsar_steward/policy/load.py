"""Loading of a policy: a file's keys, and its overrides, over the defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from pulsar_steward.errors import PolicyError
from pulsar_steward.policy.layers import base_of, layer_troubles, normalised
from pulsar_steward.policy.schema import SECTIONS, Policy
from pulsar_steward.policy.trouble import PolicyTrouble, troubles_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pulsar_steward.policy.trouble import Place


def load_policy(path: Path | None) -> Policy:
    """Loads the policy from a YAML file, or the defaults if `path` is None.

    Raises:
        PolicyError: If there is no such file, it sets nothing or is not YAML, or a key is unknown, ill-typed or
            duplicate; the message lists all such places, with line and column.
    """
    if path is None:
        return Policy()
    document = read_checked(path, troubles_in)
    if _sets_nothing(document):
        raise PolicyError(
            f"{path}: it sets nothing, and may have been emptied by mistake, with all that it protected. Write a key"
            " with its value; for the defaults on purpose take the file away, and say"
            ' `"no_policy_file": true` in the extra of the cluster\'s connection'
        )
    return _policy(document)


def read_checked(path: Path, troubles: Callable[[Any], Iterable[PolicyTrouble]]) -> Any:
    """Content of a YAML file without such troubles; of an empty one an empty mapping.

    Raises:
        PolicyError: If there is no such file, it is not YAML, or has troubles; each is named with line and column.
    """
    if not path.is_file():
        raise PolicyError(f"{path}: no such file")
    marked = _read(path)
    document = {} if marked.content is None else marked.content
    found = [(marked.spot(each.place, key=each.key), str(each)) for each in troubles(document)]
    if found := sorted([*found, *marked.odd]):
        raise PolicyError(*(_located(path, spot, words) for spot, words in found))
    return document


def parse_policy(document: Any, *, name: str) -> Policy:
    """Validates a policy that was decoded from YAML or JSON; `name` is used in errors.

    Raises:
        PolicyError: If a key is unknown or ill-typed, or a value has no JSON type (such as a set); the message names
            each such key.
    """
    found = [*_not_plain(document), *troubles_in(document)]
    if found:
        raise PolicyError(f"{name}: " + "; ".join(str(each) for each in found))
    return _policy(document)


def troubles_in(document: Any) -> list[PolicyTrouble]:
    """All problems of a document that should be a policy."""
    if not isinstance(document, Mapping):
        return troubles_of(Policy, document)
    return [*troubles_of(Policy, base_of(document)), *layer_troubles(document, SECTIONS)]


def _not_plain(value: Any, place: Place = ()) -> Iterator[PolicyTrouble]:
    """Values without an order or a JSON type; a policy with one would differ between processes."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _not_plain(each, (*place, str(key)))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _not_plain(each, (*place, number))
    elif not isinstance(value, str | int | float | None):
        yield PolicyTrouble(place, f"is a {type(value).__name__}: give a list, a mapping, a text or a number")


def _sets_nothing(content: Any) -> bool:
    """True for a document without a single value, however many sections it names."""
    return isinstance(content, Mapping) and all(map(_sets_nothing, content.values()))


def _policy(document: Mapping[str, Any]) -> Policy:
    return Policy.model_validate(normalised(document, SECTIONS))


def _read(path: Path) -> Marked:
    try:
        return read_yaml(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = f"cannot be read as YAML: {error.problem or error.context}"
        raise PolicyError(_located(path, Spot.of(mark), words) if mark else f"{path}: {words}") from error
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise PolicyError(f"{path}: cannot be read as YAML: {' '.join(str(error).split())}") from error


def _located(path: Path, spot: Spot, words: str) -> str:
    return f"{path}:{spot.line}:{spot.column}: {words}"


# It finds duplicate keys (YAML drops one of them), and numbers such as ``010`` and ``1:30``, which YAML reads as 8
# and 90. It also finds sets, dates and other values without a plain type. The order of a set changes from process
# to process.


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
