"""Base class of every section of the policy; checks, planners and other parts define their own."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

_WARNING, _CRITICAL = "warning_", "critical_"


NUMBERS: tuple[Any, ...] = (int, float, int | None, float | None)


class Section(BaseModel):
    """A part of the policy; frozen, and closed to unknown keys.

    A `critical_` threshold must not be below the `warning_` threshold of the same name: a finding would be critical
    before it is a warning.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    UNORDERED: ClassVar[frozenset[str]] = frozenset()
    """Names of threshold pairs (without prefix) that measure different things, and so have no order."""

    @field_validator("*", mode="before")
    @classmethod
    def _no_word_for_a_number(cls, value: object, about: ValidationInfo) -> object:
        """Refuses `true`, `off` and the like, which would be read as a limit of 1 or 0."""
        if isinstance(value, bool) and cls.model_fields[str(about.field_name)].annotation in NUMBERS:
            raise ValueError(f"{str(value).lower()} is no number")
        return value

    @model_validator(mode="after")
    def _warns_first(self) -> Self:
        for name in type(self).model_fields:
            kind = name.removeprefix(_WARNING)
            critical = f"{_CRITICAL}{kind}"
            if kind == name or kind in self.UNORDERED or critical not in type(self).model_fields:
                continue
            if getattr(self, name) > getattr(self, critical):
                words = f"{name} ({getattr(self, name)}) is above {critical} ({getattr(self, critical)})"
                raise PydanticCustomError("order", "{words}", {"words": words})
        return self


def number(default: int, description: str, *, ge: int = 1, le: int | None = None) -> Any:
    """A whole number of a section, from `ge` to `le`."""
    return Field(default, ge=ge, le=le, description=description)


def percent(default: int, description: str, *, ge: int = 1) -> Any:
    """A percentage of a section, from `ge` to 100."""
    return number(default, description, ge=ge, le=100)
