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
    from pathlib import Path


def load_policy(path: Path | None) -> Policy:
    """Loads the policy from a YAML file, or the defaults if there is no file.

    Raises:
        PolicyError: If the file is not YAML, or a key is unknown, ill-typed or duplicate; the message has every such
            place, with its line and column.
    """
    if path is None or not path.exists():
        return Policy()
    marked = _read(path)
    document = {} if marked.content is None else marked.content
    found = [(marked.spot(each.place, key=each.key), str(each)) for each in troubles_in(document)]
    found += [
        (spot, f"{key}: stands twice, first in line {first.line}: one of the two would be lost")
        for key, spot, first in marked.twice
    ]
    if found:
        raise PolicyError(*(_located(path, spot, words) for spot, words in sorted(found)))
    return _policy(document)


def parse_policy(document: Any, *, name: str) -> Policy:
    """Validates a policy that was decoded from YAML or JSON; `name` is used in errors.

    Raises:
        PolicyError: If a key is unknown or ill-typed; the message names each such key.
    """
    found = troubles_in(document)
    if found:
        raise PolicyError(f"{name}: " + "; ".join(str(each) for each in found))
    return _policy(document)


def troubles_in(document: Any) -> list[PolicyTrouble]:
    """Every problem of a document that should be a policy."""
    if not isinstance(document, Mapping):
        return troubles_of(Policy, document)
    return [*troubles_of(Policy, base_of(document)), *layer_troubles(document, SECTIONS)]


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
