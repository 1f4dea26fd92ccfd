"""The base of every part of a policy."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the policy; frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
