"""The report as JSON, and its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest

from pulsar_steward.report.checkup.document import Checkup, as_json, schema, schema_text
from tests.unit.report_checkup.snapshots import a_finding, meta, skewed

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Checkup]

SHIPPED = Path(__file__).resolve().parents[3] / "docs" / "checkup.schema.json"


@pytest.mark.parametrize(
    "changed",
    [
        {},
        skewed(),
        {"snapshot": meta(unread_brokers=["broker-02:8080"], unread_namespaces=["a/*"])},
        {"findings": [a_finding("info", snapshots_in_a_row=3, first_seen=meta()[0]["taken_at"])], "verdicts": []},
    ],
    ids=["healthy", "skewed", "partial", "standing"],
)
def test_what_is_written_is_valid(checkup_with: Make, changed: dict[str, Any]) -> None:
    """The JSON document is valid by the schema, and decodes to the same check-up."""
    checkup = checkup_with(**changed)
    text = as_json(checkup)

    jsonschema.Draft202012Validator(schema()).validate(json.loads(text))
    assert msgspec.json.decode(text, type=Checkup) == checkup
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("key", "value"), [("format", "else"), ("version", 2), ("outcome", "fine"), ("checks", {}), ("counts", None)]
)
def test_the_schema_refuses_what_is_none(checkup_with: Make, key: str, value: object) -> None:
    """The schema refuses a document with an invalid value."""
    document = json.loads(as_json(checkup_with())) | {key: value}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(document)


def test_a_missing_field_is_refused(checkup_with: Make) -> None:
    """The schema accepts the document, and refuses it without any one of its top-level fields."""
    document = json.loads(as_json(checkup_with()))
    validator = jsonschema.Draft202012Validator(schema())

    validator.validate(document)
    for left_out in document:
        with pytest.raises(jsonschema.ValidationError, match=f"'{left_out}' is a required property"):
            validator.validate({field: value for field, value in document.items() if field != left_out})


def test_the_shipped_schema_is_the_documents() -> None:
    """`docs/checkup.schema.json` equals the generated schema; `steward schema` writes it anew."""
    assert SHIPPED.read_text(encoding="utf-8") == schema_text()


def test_the_schema_is_a_schema() -> None:
    """The generated schema is valid JSON Schema of the draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(schema())
