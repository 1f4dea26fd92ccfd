"""A check-up as JSON, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.outside_text import shown_json

if TYPE_CHECKING:
    from pulsar_steward.report.checkup.document import Checkup


def as_json(checkup: Checkup) -> str:
    """The document, indented, with a line break at its end; invisible characters are escaped."""
    return shown_json(msgspec.json.format(msgspec.json.encode(checkup), indent=2)).decode() + "\n"
