"""Sections of the checks, each defined in the check's own file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import create_model

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.model.section import Section

if TYPE_CHECKING:

    class CheckSections(Section):
        """Sections of the checks, each an attribute with the check's name; the registry knows which there are."""

        def __getattr__(self, name: str) -> Any:
            """Section of the check with this name."""

else:
    CheckSections = create_model(
        "CheckSections", __base__=Section, **{check.section: (check.policy, check.policy()) for check in CHECKS}
    )
