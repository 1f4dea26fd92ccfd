"""Kafka clusters: the views that their checks select from."""

from __future__ import annotations

from pulsar_steward.checks.views import SqlView

TITLE = "Kafka"
"""Title of this group of checks."""

VIEWS = (
    # A row a replica: its broker, whether it is in sync, leads, is the preferred leader, and leads without another one
    # in sync, so that nobody can lead for it.
    SqlView(
        "kafka_replicas",
        """select topic, partition, id, list_contains(in_sync, id) as in_sync, id = replicas[1] as preferred,
            coalesce(leader = id, false) as leads, leads and len(p.in_sync) < 2 as alone
        from (select *, unnest(replicas) as id from kafka_partitions) p""",
    ),
    # Each broker with what it holds and leads.
    SqlView(
        "kafka_held",
        """with held as (
            select id, count(*) as replicas, count(*) filter (leads) as leads, count(*) filter (preferred) as preferred,
                count(*) filter (alone) as alone, min(concat(topic, '-', partition)) filter (alone) as example
            from kafka_replicas group by id)
        select id, broker, address, rack, listed, coalesce(replicas, 0) as replicas, coalesce(leads, 0) as leads,
            coalesce(preferred, 0) as preferred, coalesce(alone, 0) as alone, example
        from kafka_brokers left join held using (id)""",
        kept=True,
    ),
)
"""Views that the queries of these checks use besides `pulsar_steward.checks.views`; later ones may use earlier ones."""

ELECTION = "kafka-leader-election.sh --bootstrap-server SERVERS --election-type preferred --all-topic-partitions"
"""Command by which partitions are led by their first replicas again."""

REASSIGN = "kafka-reassign-partitions.sh --bootstrap-server SERVERS"
"""Begin of the command that moves replicas."""
