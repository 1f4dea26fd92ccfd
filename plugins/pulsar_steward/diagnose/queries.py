"""Queries ready to run: SQL with parameters and limits, so that tasks need neither checks nor policies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pulsar_steward.model.topics import PARTITION_END

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulsar_steward.checks.check import CheckContext, LookBack, Query
    from pulsar_steward.model.section import Section

FOUND = "_found"
"""Column with the number of rows before the limit."""

_PARAMETER = re.compile(r"(?<![$\w])\$(\w+)")
_WORD = re.compile(r"\w+")
_BY_TOPIC = re.compile(r"(?P<first>[^,()]+?)(?P<falling> desc)?,(.*,)? topic(, \w+)?")
"""ORDER BY expressions of rows about topics."""

Key = tuple[str, str]
"""Names of the asker and of its query."""


class Queries(Protocol):
    """Set of queries, such as those of a `pulsar_steward.checks.check.Check`."""

    @property
    def shards(self) -> Mapping[str, Query]:
        """Queries on each shard."""

    @property
    def earlier(self) -> Mapping[str, LookBack]:
        """Queries on each shard of earlier snapshots."""

    @property
    def cluster(self) -> Mapping[str, Query]:
        """Queries on the whole snapshot."""


@dataclass(frozen=True)
class QuerySet:
    """A set of queries with a name and limits.

    Attributes:
        name: A check's id, or another unique name.
        queries: The queries.
        context: The limits that the queries refer to.
    """

    name: str
    queries: Queries
    context: CheckContext[Any]


@dataclass(frozen=True)
class PreparedQuery:
    """A query with all data that is needed to run it."""

    key: Key
    sql: str
    worst_first: str | None
    most: int
    detail: str | None
    parameters: Mapping[str, Any]
    limits: tuple[Mapping[str, Any], ...]
    """Rows of `limits`: the values for a `namespace` or `tenant` (both null: everything else)."""

    @property
    def parameters_of_all(self) -> dict[str, Any]:
        """Parameters without those of its `detail` alone, for `statement_on_all`."""
        names = set(_PARAMETER.findall(self.sql))
        return {name: value for name, value in self.parameters.items() if name in names}


def prepared(query_set: QuerySet, name: str, query: Query | LookBack) -> PreparedQuery:
    """Makes a query ready to run."""
    words = text_of(query)
    return PreparedQuery(
        key=(query_set.name, name),
        sql=query.sql,
        worst_first=_spread(getattr(query, "worst_first", None)),
        most=getattr(query, "most", 0),
        detail=getattr(query, "detail", None),
        parameters={each: _value(query_set.context, each) for each in sorted(set(_PARAMETER.findall(words)))},
        limits=tuple(_limits(query_set.context)) if "limits" in words_of(words) else (),
    )


def _spread(worst_first: str | None) -> str | None:
    """ORDER BY expressions by which partitions of one topic take turns with other topics, if the rows are about topics.

    Rows of another severity stay apart: it is the first expression, if that is true or false, or is `rank`. The order
    of the kept rows, and of the combined rows of several shards, is the same as of all rows.
    """
    match = _BY_TOPIC.fullmatch(worst_first or "")
    if match is None:
        return worst_first
    first, falling = match["first"], match["falling"] or ""
    severity = first if first == "rank" else f"case when typeof({first}) = 'BOOLEAN' then try_cast({first} as int) end"
    topic = f"{severity}, regexp_replace(topic, '{PARTITION_END}', '')"
    turn = f"row_number() over (partition by {topic} order by {worst_first})"
    return f"{severity}{falling}, {turn}, {worst_first}"


def text_of(query: Query | LookBack | PreparedQuery) -> str:
    """SQL of a query, with its detail."""
    return f"{query.sql} {getattr(query, 'detail', None) or ''}"


def words_of(sql: str) -> list[str]:
    """Words in SQL, including the names of tables and views."""
    return _WORD.findall(sql)


def _value(context: CheckContext[Any], parameter: str) -> Any:
    """Value of a parameter: `now`, a field of the asker's own section, or ``section__field``."""
    if parameter == "now":
        return context.about.taken_at.timestamp()
    section, found, name = parameter.partition("__")
    if found:
        return getattr(getattr(context.policy, section), name)
    return getattr(context.limits, parameter)


def _limits(context: CheckContext[Any]) -> Iterator[Mapping[str, Any]]:
    yield {"tenant": None, "namespace": None, **_fields(context.limits)}
    for limits, names in context.parts:
        for name in names:
            column = "namespace" if "/" in name else "tenant"
            yield {"tenant": None, "namespace": None, column: name, **_fields(limits)}


def _fields(section: Section) -> dict[str, Any]:
    return {name: value for name, value in section.model_dump().items() if isinstance(value, bool | int | float | str)}


def statement_of(asked: PreparedQuery) -> str:
    """Full SELECT statement of a query."""
    if asked.worst_first is None:
        return statement_on_all(asked, "select * from found order by all")
    listed = f"select *, count(*) over () as {FOUND} from found order by {asked.worst_first} limit {asked.most}"
    detailed = "select * from worst" if asked.detail is None else asked.detail
    worst = f", worst as materialized ({listed}), detailed as ({detailed})"
    return statement_on_all(asked, f"select * from detailed order by {asked.worst_first}", worst)


def statement_on_all(asked: PreparedQuery, select: str, tables: str = "") -> str:
    """Full statement of a SELECT over `found`, all rows of a query; `tables` are further ones for its WITH clause."""
    limits = f"limits as ({_limits_select(asked.limits)}), " if asked.limits else ""
    return f"with {limits}found as ({asked.sql}){tables} {select}"


def _limits_select(limits: Sequence[Mapping[str, Any]]) -> str:
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
