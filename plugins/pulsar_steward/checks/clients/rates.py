"""Limits of rates that are in force, what they held back, and who set them: for every check that names such a limit.

Rates of one topic or subscription are set by its topic, its namespace or the brokers, in this order. What a topic sets
itself is read where brokers say that a rate held something back. What a limit held back is counted by brokers since the
topic was loaded, for limits of a topic's own as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.views import SqlView
from pulsar_steward.model.measures import DISPATCHING_LIMITED, PUBLISHING_LIMITED
from pulsar_steward.model.units import MEGABYTE, counted, number_in_words, throughput_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


@dataclass(frozen=True)
class Rate:
    """A kind of rate limit, by the names of its settings.

    Attributes:
        kind: Its name in `rate_limits`; of dispatch rates the label `reason` of brokers' counters.
        policy: Member of a namespace's policies, by cluster; None: namespaces have none.
        own: Name of a topic's own policy; None: topics have none.
        members: Members of that for messages and for bytes.
        settings: The same in ``broker.conf``.
        words: Its name in a sentence.
    """

    kind: str
    policy: str | None
    own: str | None
    members: tuple[str, str]
    settings: tuple[str, str]
    words: str


_DISPATCH = "dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte"

RATES = (
    Rate(
        "publish",
        "publishMaxMessageRate",
        "publishRate",
        ("publishThrottlingRateInMsg", "publishThrottlingRateInByte"),
        ("maxPublishRatePerTopicInMessages", "maxPublishRatePerTopicInBytes"),
        "publish rate",
    ),
    Rate(
        "subscription",
        "subscriptionDispatchRate",
        "subscriptionDispatchRate",
        _DISPATCH,
        ("dispatchThrottlingRatePerSubscriptionInMsg", "dispatchThrottlingRatePerSubscriptionInByte"),
        "dispatch rate of a subscription",
    ),
    Rate(
        "topic",
        "topicDispatchRate",
        "dispatchRate",
        _DISPATCH,
        ("dispatchThrottlingRatePerTopicInMsg", "dispatchThrottlingRatePerTopicInByte"),
        "dispatch rate of a topic",
    ),
    Rate("broker", None, None, _DISPATCH, _DISPATCH, "dispatch rate of a broker"),
)

_WORDS = {rate.kind: rate.words for rate in RATES}


_PERIOD = "coalesce(greatest(try_cast(rate->>'ratePeriodInSecond' as double), 1), 1)"


def _amounts(rate: Rate) -> tuple[str, str]:
    """SQL for the messages and bytes of a document `rate` in its period."""
    messages, size = (f"try_cast(rate->>'{member}' as double)" for member in rate.members)
    return messages, size


def _own_limits(rate: Rate) -> str:
    """SQL for one kind of rate of topics themselves."""
    messages, size = _amounts(rate)
    return f"""
    select topic, '{rate.kind}' as kind, 'topic' as set_by, '{rate.own}' as setting,
        nullif(greatest({messages} / {_PERIOD}, 0), 0) as messages, nullif(greatest({size} / {_PERIOD}, 0), 0) as bytes
    from (select topic, own->'{rate.own}' as rate from documents)
    """


TOPIC_RATES = SqlView(
    "topic_rates",
    f"""
    with documents as (
        select topic, max(topic_rates_json)::json as own from drilled where json_valid(topic_rates_json) group by topic)
    select * from ({" union all ".join(_own_limits(rate) for rate in RATES if rate.own)})
    where messages > 0 or bytes > 0
    """,
)
"""Limits of rates that drilled topics set themselves: columns as of `rate_limits`, by `topic`."""


def _limits(rate: Rate) -> str:
    """SQL for one kind of rate: a namespace's takes precedence as a whole; of dispatch rates only with a limit."""
    own = f"own->'{rate.policy}'->cluster" if rate.policy else "null::json"
    messages, size = _amounts(rate)
    default, default_size = (
        f"(select max(try_cast(trim(value) as double)) from usual_settings where key = '{setting}')"
        for setting in rate.settings
    )
    is_own = "rate is not null" if rate.kind == "publish" else f"coalesce({messages} > 0 or {size} > 0, false)"
    return f"""
    select namespace, '{rate.kind}' as kind, if({is_own}, 'namespace', 'brokers') as set_by,
        if({is_own}, '{rate.policy}', '{rate.settings[0]}') as setting,
        nullif(greatest(if({is_own}, {messages} / {_PERIOD}, {default}), 0), 0) as messages,
        nullif(greatest(if({is_own}, {size} / {_PERIOD}, {default_size}), 0), 0) as bytes
    from (select namespace, {own} as rate from documents)
    """


RATE_LIMITS = SqlView(
    "rate_limits",
    f"""
    with documents as (
        select namespace, case when json_valid(policies_json) then policies_json::json end as own,
            pulsar_cluster as cluster
        from namespaces cross join (select pulsar_cluster from snapshot))
    select * from ({" union all ".join(map(_limits, RATES))}) where messages > 0 or bytes > 0
    """,
    kept=True,
)
"""Limits of rates per second: `namespace`, `kind` (see `Rate`), `messages` and `bytes` (null: none), `setting`.

`set_by` is ``namespace`` or ``brokers``, of which the most frequent value counts.
"""


def _in_force(topics: str, namespace: str = "namespace_of(topic)") -> str:
    """SQL for the limits in force for topics, as of `rate_limits`: the topic's own, or its namespace's or brokers'."""
    return f"""
    select topic, kind, set_by, setting, messages, bytes from topic_rates semi join {topics} using (topic)
    union all
    select topic, kind, set_by, setting, messages, bytes
    from (select t.topic, r.* from (select topic, {namespace} as namespace from {topics}) t
        join rate_limits r using (namespace)) anti join topic_rates using (topic, kind)
    """


_PUBLISHED = " union all ".join(
    f"""select topic, t.namespace, '{amount}' as unit, t.{column}::double as amount, {amount} as allowed, set_by,
        setting
    from user_topics t join ({_in_force("user_topics", "namespace")}) r using (topic)
    where kind = 'publish' and {amount} > 0"""
    for amount, column in (("messages", "message_rate_in"), ("bytes", "throughput_in_bytes"))
)

PUBLISH_RATES = SqlView("publish_rates", _PUBLISHED)
"""Users' topics under a publish rate that is known: `amount` of `unit` a second, of `allowed`."""

PUBLISHERS_HELD = SqlView(
    "publishers_held",
    f"""
    with told as (
        select topic, try_cast(max(times) as bigint) as times
        from (select topic, publishing_limited as times from drilled union all
            select topic, value from metrics where series = '{PUBLISHING_LIMITED}' and topic is not null)
        group by topic)
    select topic, times, kind, messages, bytes, set_by
    from told left join (from ({_in_force("told")}) where kind = 'publish') using (topic)
    """,
)
"""How often connections of a topic's producers were paused (`times`) since it was loaded, and its publish rate, if any.

From 3.3 on, brokers count every pause: for a rate, for too many pending entries, and for another topic on the same
connection (``ServerCnxThrottleTracker``). So it proves no rate where entries are slow.
"""

DISPATCH_HELD = SqlView(
    "dispatch_held",
    f"""
    with told as (
        select topic, subscription, labels_json->>'reason' as kind, sum(trunc(value)::bigint)::bigint as times
        from metrics where series in {DISPATCHING_LIMITED} and topic is not null and subscription is not null
            and value between 1 and 1e15
        group by topic, subscription, kind, source
        union all
        select topic, subscription, null as kind, dispatching_limited from drilled where dispatching_limited > 0),
    most as (
        select topic, subscription, max(times) as times, arg_max(kind, (times, kind)) filter (kind is not null) as kind
        from told group by topic, subscription),
    limited as (
        select most.* replace (coalesce(most.kind, r.kind) as kind), messages, bytes, set_by
        from most left join ({_in_force("(select distinct topic from most)")}) r
            on r.topic = most.topic and r.kind <> 'publish' and coalesce(most.kind, r.kind) = r.kind)
    from limited
    qualify row_number() over (partition by topic, subscription order by kind = 'subscription' desc, kind desc) = 1
    """,
)
"""Subscriptions that a dispatch rate held back: how often (`times`), by which `kind`, and that limit in force.

`messages`, `bytes` and `set_by` are null where nobody is known to set it: a topic that was not asked may. `kind`
is null where brokers did not say which one, and none is known. Brokers count it in 4.0.7, and not in 3.3.2.
"""

VIEWS = (TOPIC_RATES, RATE_LIMITS, PUBLISH_RATES, PUBLISHERS_HELD, DISPATCH_HELD)

_LIMIT = "'times': times, 'kind': kind, 'messages': messages, 'bytes': bytes, 'set_by': set_by"

HELD = f"{{{_LIMIT}}}"
"""SQL for a row of `dispatch_held` or `publishers_held` as one value, for `held_words` and `rate_words`."""

SUBSCRIPTIONS_HELD = f"""
(select topic, subscription, {HELD} as held
from dispatch_held where times >= $limit_reached__minimum_throttlings)
"""
"""Table of subscriptions with `held`, for a join."""

AT_PUBLISH_RATE = """
(select topic, arg_max({'unit': unit, 'amount': amount, 'allowed': allowed, 'set_by': set_by, 'setting': setting},
    (amount / allowed, unit)) as publish_rate
from publish_rates where amount * 100 >= allowed * $limit_reached__warning_percent_of_rate group by topic)
"""
"""Table of topics at their publish rate with `publish_rate` (for `published_words`), for a join."""


def _messages(per_second: float) -> str:
    return number_in_words(per_second) if per_second >= 1 else f"{per_second:.2g}"


def _throughput(per_second: float) -> str:
    return throughput_in_words(per_second) if per_second >= MEGABYTE else f"{_messages(per_second)} B/s"


def rate_words(limit: Row) -> str:
    """Name of a limit with its figures and who set it."""
    limits = (
        f"{_messages(limit['messages'])} messages/s" if limit["messages"] else "",
        _throughput(limit["bytes"]) if limit["bytes"] else "",
    )
    rates = " or ".join(filter(None, limits))
    whose = f"{rates}, set by the {limit['set_by']}" if rates else "the topic's own, or one that was not read"
    return f"{_WORDS.get(limit['kind'] or '', 'dispatch rate')} ({whose})"


def held_words(held: Row) -> str:
    """Clause about the dispatch rate that held a subscription back."""
    return f"the {rate_words(held)} held it back {counted(held['times'], 'time')} since its topic was loaded"


def published_words(limit: Row) -> str:
    """Clause about a topic at its publish rate, with the limit and who set it."""
    amounts = (
        (_throughput(limit["amount"]), _throughput(limit["allowed"]))
        if limit["unit"] == "bytes"
        else (_messages(limit["amount"]), f"{_messages(limit['allowed'])} messages/s")
    )
    return (
        f"takes {amounts[0]} of the {amounts[1]} that {limit['setting']} allows (set by the {limit['set_by']}):"
        " producers are made to wait"
    )
