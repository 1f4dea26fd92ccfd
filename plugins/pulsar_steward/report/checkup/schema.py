"""JSON schema of a check-up, generated from the document's classes: docs/checkup.schema.json is a copy of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pulsar_steward.report.checkup.document import VERSION, Checkup

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The schema as a JSON document."""
    made = msgspec.json.schema(Checkup)
    return {"$schema": DIALECT, "title": f"Pulsar Steward check-up, version {VERSION}", **made}


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
