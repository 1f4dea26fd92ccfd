"""Loading of a policy: a file's keys, and its overrides, over the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from pulsar_steward.errors import PolicyError
from pulsar_steward.policy.layers import base_of, layer_troubles, normalised
from pulsar_steward.policy.marks import Marked, Spot, read_yaml
from pulsar_steward.policy.schema import SECTIONS, Policy
from pulsar_steward.policy.trouble import PolicyTrouble, troubles_of

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    if not path.is_file():
        raise PolicyError(f"{path}: no such file")
    marked = _read(path)
    document = {} if marked.content is None else marked.content
    found = [(marked.spot(each.place, key=each.key), str(each)) for each in troubles_in(document)]
    if found := sorted([*found, *marked.odd]):
        raise PolicyError(*(_located(path, spot, words) for spot, words in found))
    if _sets_nothing(document):
        raise PolicyError(
            f"{path}: it sets nothing, and may have been emptied by mistake, with all that it protected. Write a key"
            " with its value; for the defaults on purpose take the file away, and say"
            ' `"no_policy_file": true` in the extra of the cluster\'s connection'
        )
    return _policy(document)


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
