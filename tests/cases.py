"""Rows of a parametrised test, each with its name in front of its values."""

from __future__ import annotations

from typing import Any

import pytest


def cases(names: str, *rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Runs a test once a row: ``@cases("days, hours", ("a day", 1, 24), ("two", 2, 48))``."""
    return pytest.mark.parametrize(names.split(", "), [pytest.param(*values, id=name) for name, *values in rows])
