"""Problems of a policy: each with its place and a sentence on valid values."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

Place = tuple[int | str, ...]
"""Keys from the top of the file down to a value."""


class PolicyTrouble(NamedTuple):
    """One problem.

    Attributes:
        place: Its place.
        words: The problem, and what would be valid.
        key: True if the problem is the key itself, not its value.
    """

    place: Place
    words: str
    key: bool = False

    def __str__(self) -> str:
        """The place, dotted, and the problem."""
        return f"{dotted(self.place)}: {self.words}"


def dotted(place: Place) -> str:
    """Place in dotted notation."""
    return ".".join(str(part) for part in place) or "the document"


def troubles_of(model: type[BaseModel], document: object) -> list[PolicyTrouble]:
    """Problems of a document that should be one of `model`."""
    try:
        model.model_validate(document)
    except ValidationError as error:
        return [_in_words(model, detail) for detail in error.errors()]
    return []


def unknown(place: Place, key: object, valid: Iterable[str]) -> PolicyTrouble:
    """Problem of an unknown key below `place`, with the most similar valid one."""
    near = difflib.get_close_matches(str(key), list(valid), n=1)
    return PolicyTrouble((*place, str(key)), "no such key" + (f"; did you mean {near[0]}?" if near else ""), key=True)


def models_in(model: type[BaseModel]) -> Mapping[str, type[BaseModel]]:
    """Sections of a model, by key."""
    kinds = {name: field.annotation for name, field in model.model_fields.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseModel)}


_MAPPING = "has to be a mapping: a key, a colon and a value on each line"
_SAID = {
    "missing": "is missing",
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "dict_type": _MAPPING,
    "tuple_type": "has to be a list",
    "list_type": "has to be a list",
    "set_type": "has to be a list",
    "frozen_set_type": "has to be a list",
    "string_type": "has to be a text: put quotes around it",
    "string_too_short": "is empty",
    "path_type": "has to be the path of a file",
    "bool_type": "has to be true or false",
    "bool_parsing": "has to be true or false",
    "int_type": "has to be a whole number",
    "int_parsing": "has to be a whole number",
    "int_from_float": "has to be a whole number",
    "float_type": "has to be a number",
    "float_parsing": "has to be a number",
    "finite_number": "has to be a finite number",
    "greater_than": "has to be more than {gt}",
    "greater_than_equal": "has to be {ge} or more",
    "less_than": "has to be less than {lt}",
    "less_than_equal": "has to be {le} or less",
    "literal_error": "has to be {expected}",
    "enum": "has to be {expected}",
}
"""Words for the types of pydantic's errors; others, such as of validators here, have words of their own."""


def _in_words(model: type[BaseModel], detail: ErrorDetails) -> PolicyTrouble:
    place = detail["loc"]
    if detail["type"] != "extra_forbidden":
        words = _SAID.get(detail["type"], "{msg}").format(
            **{"msg": detail["msg"].removeprefix("Value error, "), **detail.get("ctx", {})}
        )
        return PolicyTrouble(place, words, key=detail["type"] in {"order", "invalid_key"})
    *above, key = place
    return unknown(tuple(above), key, _keys_of(model, above))


def _keys_of(model: type[BaseModel], place: list[int | str]) -> list[str]:
    """Keys that are valid at a place; a part that is no field is an index, or a freely chosen name."""
    for part in place:
        if str(part) in model.model_fields:
            found = _model_in(model.model_fields[str(part)].annotation)
            if found is None:
                return []
            model = found
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Model in a field's type, alone or in a collection."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each))), None)
