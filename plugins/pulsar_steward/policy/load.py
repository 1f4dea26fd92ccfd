"""Reads a cluster's policy: the file's keys over the shipped defaults."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, ValidationError

from pulsar_steward.errors import PolicyError
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails


def load_policy(path: Path | None) -> Policy:
    """The policy in a YAML file, or the defaults where there is no file.

    Raises:
        PolicyError: If the file is not YAML, or a key is unknown or ill-typed; the message names each such key.
    """
    if path is None or not path.exists():
        return Policy()
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PolicyError(f"{path}: cannot be read as YAML: {error}") from error
    return parse_policy({} if document is None else document, name=str(path))


def parse_policy(document: Any, *, name: str) -> Policy:
    """The policy in a document that YAML or JSON yielded; `name` is said in errors.

    Raises:
        PolicyError: If a key is unknown or ill-typed; the message names each such key.
    """
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        raise PolicyError(f"{name}: " + "; ".join(_in_words(detail) for detail in error.errors())) from error


def _in_words(detail: ErrorDetails) -> str:
    place = ".".join(str(part) for part in detail["loc"]) or "the document"
    if detail["type"] != "extra_forbidden":
        return f"{place}: {detail['msg']}"
    *section, key = detail["loc"]
    near = difflib.get_close_matches(str(key), _keys_of(section), n=1)
    return f"{place}: no such key" + (f"; did you mean {near[0]}?" if near else "")


def _keys_of(section: list[int | str]) -> list[str]:
    model: type[BaseModel] = Policy
    for name in section:
        inner = model.model_fields[str(name)].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)
