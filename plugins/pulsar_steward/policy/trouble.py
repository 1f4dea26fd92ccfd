"""Problems of a policy: each with its place and a sentence that says what would be valid."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

Place = tuple[int | str, ...]
"""Keys from the top of the file down to a value."""

FORMER_KEYS = {
    ("delayed_holds_ledgers", "warning_entries_per_backlog_message"): "it is warning_entries_per_backlog_entry now",
    ("quota_stuck", "most_bytes_per_message"): "it is most_bytes_per_entry now",
    ("quota_stuck", "suspects"): "the 10,000 fullest topics are looked at, always",
    ("subscription_stalled", "critical_backlog_messages"): "critical_due_messages counts messages, not entries",
    ("subscription_stalled", "minimum_backlog_messages"): "minimum_due_messages counts messages, not entries",
}
"""Section and key of earlier policies, and what to say now. None is translated, as what they counted changed too."""


class PolicyTrouble(NamedTuple):
    """One problem.

    Attributes:
        place: Its place.
        words: The problem, and what would be valid.
        key: True if the key itself is the problem, and not its value.
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


def troubles_of(model: type[BaseModel], document: object, section: str = "") -> list[PolicyTrouble]:
    """Problems of a document that should be one of `model`; `section` is its name, where it is one of a policy."""
    try:
        model.model_validate(document)
    except ValidationError as error:
        return [_in_words(model, detail, section) for detail in error.errors()]
    return []


def unknown(place: Place, key: object, valid: Iterable[str]) -> PolicyTrouble:
    """Problem of an unknown key below `place`, with the most similar valid one."""
    near = difflib.get_close_matches(str(key), list(valid), n=1)
    return PolicyTrouble((*place, str(key)), "no such key" + (f"; did you mean {near[0]}?" if near else ""), key=True)


def models_in(model: type[BaseModel]) -> Mapping[str, type[BaseModel]]:
    """Sections of a model, by key."""
    kinds = {name: field.annotation for name, field in model.model_fields.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseModel)}


def _in_words(model: type[BaseModel], detail: ErrorDetails, section: str) -> PolicyTrouble:
    place = detail["loc"]
    if detail["type"] != "extra_forbidden":
        return PolicyTrouble(place, detail["msg"], key=detail["type"] in {"order", "invalid_key"})
    *above, key = place
    if now := FORMER_KEYS.get((str(above[-1]) if above else section, str(key))):
        return PolicyTrouble(place, f"no such key any more: {now}", key=True)
    return unknown(tuple(above), key, _keys_of(model, above))


def _keys_of(model: type[BaseModel], place: list[int | str]) -> list[str]:
    """Keys that may stand at a place; a part that is no field is an index, or a name that somebody chose."""
    for part in place:
        if str(part) in model.model_fields:
            found = _model_in(model.model_fields[str(part)].annotation)
            if found is None:
                return []
            model = found
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Model that a field holds, be it one or a collection of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each))), None)
