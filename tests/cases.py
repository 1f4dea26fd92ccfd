"""Rows of a parametrised test: with a name in front of each, or without."""

from __future__ import annotations

from typing import Any

import pytest


def cases(names: str, *rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Runs a test once a row, which begins with its name: ``@cases("days, hours", ("a day", 1, 24))``."""
    return pytest.mark.parametrize(names.split(", "), [pytest.param(*values, id=name) for name, *values in rows])


def row_by_row(names: str, *values: object) -> pytest.MarkDecorator:
    """Runs a test once a row whose values say by themselves what it is about."""
    return pytest.mark.parametrize(names.split(", ") if ", " in names else names, values)
