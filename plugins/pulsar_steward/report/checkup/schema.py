"""JSON schema of what `steward checkup --json` writes: a check-up of one cluster, or of a fleet."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pulsar_steward.report.checkup.document import FLEET, VERSION, Checkup
from pulsar_steward.report.checkup.fleet import FleetCheckup

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The schema: docs/checkup.schema.json is a copy of it. A document says by its `format` which of the two it is."""
    (one, several), parts = msgspec.json.schema_components([Checkup, FleetCheckup], ref_template="#/$defs/{name}")
    return {
        "$schema": DIALECT,
        "title": f"Pulsar Steward check-up, version {VERSION}",
        "if": {"properties": {"format": {"const": FLEET}}, "required": ["format"]},
        "then": several,
        "else": one,
        "$defs": parts,
    }


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
