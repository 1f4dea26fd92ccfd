"""Common SQL for the queries of checks: macros and views over the tables of a shard.

A shard's own tables have their own names, with columns that nearly every query needs:

- `topics`: `of_users`, true unless the topic belongs to Pulsar's own tenant or is a namespace's system topic
(``__...``).
- `subscriptions`: `broker` of the topic; `of_users`, true if the topic's is, and it is neither Pulsar's nor a reader's.
- `namespace` is null only if the topic is null.

Views of one subject are in `VIEWS` of the folder of its checks.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_steward.model.bundles import HEARTBEAT
from pulsar_steward.model.subscription import PATTERNS, HolderKind
from pulsar_steward.model.topics import OF_USERS, SEGMENT


@dataclass(frozen=True)
class SqlView:
    """A view that queries select from.

    Attributes:
        name: Its name.
        sql: A SELECT statement.
        kept: True if it is computed once per shard, as it is expensive and several queries use it.
    """

    name: str
    sql: str
    kept: bool = False


MACROS = (
    # Text between the domain and the last slash, or the one before of a segment; for an old name it includes the
    # cluster. A pattern would be slower.
    """create macro before_last(name) as left(name, length(name) - length(split_part(name, '/', -1)) - 1)""",
    f"""create macro namespace_of(topic) as split_part(
        before_last(if(starts_with(topic, '{SEGMENT}'), before_last(topic), topic)), '://', 2)""",
    "create macro valid(document) as case when json_valid(document) then document end",
    f"create macro of_users(topic) as {OF_USERS}",
    f"create macro is_reader(subscription) as regexp_matches(subscription, '{PATTERNS[HolderKind.READER]}')",
    f"create macro is_heartbeat(namespace) as regexp_matches(namespace, '{HEARTBEAT}')",
)

TABLE_MACROS = {
    # A setting, for each broker that reported it.
    "setting": """create macro setting(name) as table
        select broker, value from configuration where key = name and value is not null"""
}
"""Macros that need the tables that they select from, by name."""

LARGE_TABLES = (
    SqlView(
        "topics",
        """select * replace (coalesce(namespace, namespace_of(topic)) as namespace), of_users(topic) as of_users
        from raw_topics""",
        kept=True,
    ),
    SqlView(
        "subscriptions",
        """select s.* replace (coalesce(s.namespace, namespace_of(s.topic)) as namespace), t.broker,
            of_users(s.topic) and not starts_with(s.subscription, '__') and not is_reader(s.subscription) as of_users
        from raw_subscriptions s left join topics t using (topic)""",
        kept=True,
    ),
    SqlView("clients", "select * from raw_clients"),
    SqlView("metrics", "select * from raw_metrics"),
)
"""Views over the files' rows (``raw_<table>``)."""

USUAL_SETTINGS = SqlView(
    "usual_settings",
    """select key, first(value order by brokers desc, value) as value
    from (select key, value, count(*) as brokers from configuration where value <> '' group by key, value)
    group by key""",
)
"""The most frequent value of each setting among the brokers that report one; at a tie, the lowest text."""

SHARED = (
    USUAL_SETTINGS,
    SqlView("user_topics", "select * from topics where of_users"),
    SqlView("user_subscriptions", "select * from subscriptions where of_users"),
    SqlView(
        "namespaces_seen",
        """select namespace from namespaces union select namespace from bundles
        union select namespace from topics where namespace is not null""",
        kept=True,
    ),
    # Namespaces' own settings for writing ledgers; null if a namespace leaves one to the brokers. 4.2 writes a rate of
    # -1 where none was given.
    SqlView(
        "persistence",
        """select namespace, own.persistence.bookkeeperEnsemble as ensemble,
            own.persistence.bookkeeperWriteQuorum as write_quorum,
            case when own.persistence.managedLedgerMaxMarkDeleteRate >= 0
                then own.persistence.managedLedgerMaxMarkDeleteRate end as mark_deletes_per_second
        from (select namespace, json_transform(valid(policies_json),
            '{"persistence": {"bookkeeperEnsemble": "BIGINT", "bookkeeperWriteQuorum": "BIGINT",
                "managedLedgerMaxMarkDeleteRate": "DOUBLE"}}') as own
            from namespaces)
        where own.persistence is not null""",
    ),
)
"""Views for checks of any subject."""
