"""Thresholds in force for each namespace of a shard, as a SELECT that questions join with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def limits_select(limits: Sequence[Mapping[str, Any]]) -> str:
    """SELECT statement with the limits of every namespace of the shard."""
    usual, *others = limits
    names = [name for name in usual if name not in {"tenant", "namespace"}]
    if not others:
        columns = [f"{_literal(usual[name])} as {name}" for name in names]
        return f"select namespace, {', '.join(columns)} from namespaces_seen"
    columns = []
    for name in names:
        nearest_first = sorted(others, key=lambda each: each["namespace"] is None)
        cases = [f"when {_whose(each)} then {_literal(each[name])}" for each in nearest_first]
        columns.append(f"case {' '.join(cases)} else {_literal(usual[name])} end as {name}")
    return f"select namespace, {', '.join(columns)} from namespaces_seen"


def _whose(limits: Mapping[str, Any]) -> str:
    if limits["namespace"] is not None:
        return f"namespace = {_literal(limits['namespace'])}"
    return f"split_part(namespace, '/', 1) = {_literal(limits['tenant'])}"


def _literal(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case _:
            return "'" + str(value).replace("'", "''") + "'"
