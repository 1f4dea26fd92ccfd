"""Clusters to be shown: one in trouble, with a question and a running batch, one that is well, one that is halted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import make_url

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.rows import Answer, Decision, Outcome, Proof, StepOutcome
from pulsar_steward.ledger.store import open_to_read
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.plan import Batch, Placement, Plan, approval_digest
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import ChangeSetting, GuardResult, Touched
from pulsar_steward.pages.sources import Sources
from pulsar_steward.policy.schema import Policy
from tests.builders import (
    ASKED_DIGEST,
    NOW,
    a_batch,
    a_finding,
    a_move,
    a_plan,
    a_policy,
    a_step,
    an_intended_call,
    broker,
)
from tests.ledgers import ledger_at
from tests.unit.report_checkup import snapshots
from tests.unit.report_checkup.snapshots import a_verdict, written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pulsar_steward.ledger.chain import Head

HOSTILE = '"><script>window.taken=1</script>\u202e<img src=x onerror=taken=1>'
"""A name that wants to be more than text."""

UNBROKEN = f"persistent://acme/orders/{'long' * 15}"
"""A name without a place to break a line."""

QUARTER = timedelta(minutes=15)
CLUSTERS = ("east", "west", "north")
EVERY = "pulsar_remediate/scheduled__2026-03-01T12:00:00+00:00"


def stamp(at: datetime) -> str:
    """A time as snapshots' folders have it."""
    return f"{at:%Y%m%dT%H%M%SZ}"


def observed(root: Path, cluster: str, at: datetime, *, whole: bool = True, **tables: Any) -> None:
    """Writes a diagnosed snapshot of a cluster."""
    unread = [] if whole else [broker(2)]
    head = snapshots.meta(
        snapshot_id=f"{cluster}-{stamp(at)}",
        cluster=cluster,
        taken_at=at,
        unread_brokers=unread,
        pulsar_cluster=cluster,
    )
    written(root / f"cluster={cluster}" / f"taken_at={stamp(at)}", **{"snapshot": head, **tables})


def troubled(number: int, at: datetime) -> dict[str, Any]:
    """Tables of a cluster in trouble, which gets worse with every snapshot."""
    named = [f"persistent://acme/orders/topic-{place:03d}" for place in range(20 + 4 * number)]
    findings = [
        snapshots.a_finding(first_seen=NOW - 8 * QUARTER, snapshots_in_a_row=number + 1),
        *(
            snapshots.a_finding(
                "critical" if place % 7 == 0 else "warning",
                "backlog-growing" if place == 1 else "backlog-near-quota" if place % 2 else "ack-holes",
                subject=name,
                evidence=f"{name} holds {900 + place:,} MiB of a quota of 1 GiB ({88 + place % 12} %).",
                figures_json=figures_of_backlog(place),
                first_seen=at - place * QUARTER,
                snapshots_in_a_row=place + 1,
            )
            for place, name in enumerate(named)
        ),
        snapshots.a_finding("info", "producer-fanout", subject=HOSTILE, evidence=f"{HOSTILE} has 3 producers."),
    ]
    found = {"tc-skew": 0, "backlog-growing": 0, "backlog-near-quota": 12, "ack-holes": 0, "producer-fanout": 0}
    verdicts = [
        a_verdict("gc-pressure", "unknown", "No broker told its metrics."),
        *(a_verdict(check, "found", "There are some.", more) for check, more in found.items()),
        *(a_verdict(check, "clear", "All is well.") for check in BY_ID if check not in {"gc-pressure", *found}),
    ]
    brokers: list[dict[str, Any]] = [
        {"broker": broker(place), "read": True, "leader": place == 0, "read_milliseconds": 31 + place, "bundles": 8}
        | {"topics": 4000 >> place, "producers": 900 - 100 * place, "consumers": 1900 - 100 * place}
        | {"cpu_percent": 88.0 - 13 * place, "memory_percent": 61.0 + place, "direct_memory_percent": 74.0 - 9 * place}
        | {"throughput_in_bytes": 42.5e6 / (place + 1), "throughput_out_bytes": 121.5e6 / (place + 1)}
        for place in range(6)
    ]
    bundles = [
        a_bundle("acme/orders", place, place % 6, (4000 >> (place % 6)) // (2 + place // 6))
        | {"throughput_in_bytes": 1e6 * (place * 7919 % 31), "throughput_out_bytes": 2e6 * (place * 104729 % 37)}
        | {"backlog_bytes": (900 << 20) + place}
        for place in range(60)
    ]
    usual = {"backlog_bytes": 7.4e11, "topics": 7900.0, "producers": 4300.0, "consumers": 9800.0}
    trends = [
        {"measure": measure, "subject": "east", "taken_at": at - back * QUARTER}
        | {"value": value * (1 + 0.04 * (12 - back))}
        for measure, value in usual.items()
        for back in range(12)
    ]
    trends += [
        {"measure": "topic_backlog_bytes", "subject": named[1], "taken_at": at - back * QUARTER}
        | {"value": (900 - 10 * back) * 1048576.0}
        for back in range(8)
    ]
    return {
        "findings": findings,
        "verdicts": verdicts,
        "brokers": brokers,
        "bundles": [*bundles, *quiet_bundles(), *system_bundles()],
        "transaction_coordinators": [
            {"coordinator": number, "bundle": each["bundle"], "broker": each["owner"], "broker_known": True}
            for place, each in enumerate(system_bundles())
            for number in range(4 * place, 4 * place + 4)
        ],
        "trends": trends,
        "failovers": [
            failover(each["broker"], each["topics"], others=5, delayed=6_400_000 >> place)
            for place, each in enumerate(brokers)
        ],
        "namespaces": [{"namespace": name, "policies_json": policies} for name, policies in POLICIES.items()],
        "configuration": [
            {"broker": broker(place), "key": key, "value": value} for place in range(3) for key, value in USUAL.items()
        ],
        "drilled": [
            {"topic": "persistent://acme/reminders/due-partition-0", "namespace": "acme/reminders"}
            | {"subscription": f"sender-{place}", "delayed_messages": 40_000 >> place}
            for place in range(3)
        ],
    }


def failover(name: str, topics: int, *, others: int, delayed: int = 0) -> dict[str, Any]:
    """A broker's row of `failovers`, by the rates that are usual, with a session of half a minute."""
    loading, reading = topics / min(100 * max(others, 1), 1000), delayed / 50_000
    served = round(0.32 + loading + reading)
    row: dict[str, Any] = {"broker": name, "others": others, "bundles": 8, "topics": topics}
    row |= {"delayed_messages": delayed, "session_seconds": 30.0, "assigning_seconds": 0.32}
    row |= {"loading_seconds": loading, "reading_seconds": reading}
    return row | {"ended_seconds": served, "lost_seconds": 30 + served}


def a_bundle(namespace: str, place: int, owner: int, topics: int) -> dict[str, Any]:
    """A row of a namespace's bundles."""
    name = f"0x{place:08x}_0x{place + 1:08x}"
    return {"namespace": namespace, "bundle": name, "owner": broker(owner), "owner_known": True, "topics": topics}


def figures_of_backlog(place: int) -> str:
    """Figures of a backlog that is nearly full; of the second one, that fills up."""
    figures = {"backlog_bytes": (900 + place) << 20, "limit_bytes": 1 << 30}
    if place == 1:
        return msgspec.json.encode(figures | {"seconds_to_quota": 5400, "growth_bytes_per_second": 23_000}).decode()
    return msgspec.json.encode(figures | {"bytes_percent": (900 + place) * 100 // 1024}).decode()


def system_bundles() -> list[dict[str, Any]]:
    """Bundles that `tc_batch` moves, of which the first two have moved already."""
    owners = (1, 2, 0, 0)
    return [a_bundle("pulsar/system", n, owner, 4) | {"throughput_in_bytes": 5e5} for n, owner in enumerate(owners)]


def quiet_bundles() -> list[dict[str, Any]]:
    """Bundles of namespaces whose backlogs no check found."""
    held = {"acme/reminders": 3 << 30, "acme/logs": 700 << 20, HOSTILE: 1}
    return [a_bundle(name, n, n, 5) | {"backlog_bytes": backlog} for n, (name, backlog) in enumerate(held.items())]


def observations(root: Path) -> None:
    """Snapshots of three clusters: in trouble, well, and partial and stale."""
    for number in range(8):
        at = NOW - (8 - number) * QUARTER + QUARTER
        observed(root, "east", at, whole=number != 3, **troubled(number, at))
        observed(root, "west", at, verdicts=[a_verdict(check, "clear", "All is well.") for check in BY_ID])
    two_of_three = [
        {"broker": broker(n), "read": n < 2, "leader": n == 0, "topics": 10 if n < 2 else None, "read_milliseconds": 3}
        for n in range(3)
    ]
    observed(root, "north", NOW - 40 * QUARTER, whole=False, brokers=two_of_three)


def tc_batch(cluster: str, number: int = 4) -> Batch:
    """A batch that evens out coordinators."""
    steps = [
        a_step(
            a_move(bundle=f"0x{place:08x}_0x{place + 1:08x}", target=broker(place % 2 + 1)),
            step_id=f"b1.s{place + 1:02d}",
            why="broker-00 holds 16 of 16",
            effect=f"{broker(place % 2 + 1)} holds one more",
            touched=Touched(producers=3, consumers=5, topics=4, coordinators=2),
            guards=(GuardResult(guard="owner", passed=True, reason="as planned"),) * 3,
            undo=a_move(),
            undo_note="Move it back.",
        )
        for place in range(number)
    ]
    return a_batch(
        *steps,
        title=f"Even out 16 transaction coordinators of {cluster} over 3 brokers",
        findings=(msgspec.structs.replace(a_finding(), evidence="broker-00:8080 holds 16 of 16 coordinators."),),
        before=(Placement(broker(0), 16), Placement(broker(1), 0), Placement(broker(2), 0)),
        after=(Placement(broker(0), 8), Placement(broker(1), 4), Placement(broker(2), 4)),
    )


def quota_batch(namespace: str = "acme/orders") -> Batch:
    """A batch that sets a quota, and lets brokers delete messages."""
    quota = BacklogQuota(limit_bytes=40 << 30, policy=QuotaPolicy.EVICT)
    change = ChangeSetting(namespace=namespace, name=SettingName.SIZE_QUOTA, before=None, after=quota)
    why, back = "its largest backlog is 31 GiB", "Remove it."
    step = a_step(change, step_id="b2.s01", why=why, undo=change.inverse, undo_note=back)
    found = a_finding(check_id="backlog-quota-missing", subject=namespace, evidence="No quota.")
    title = f"{namespace}: a quota for its backlog"
    return a_batch(step, batch_id="b2", kind="backlog_quota", title=title, findings=(found,), unit="")


POLICIES = {
    "acme/orders": (
        '{"backlog_quota_map":{"destination_storage":{"limitSize":1073741824,"policy":"producer_request_hold"}},'
        '"retention_policies":{"retentionTimeInMinutes":1440,"retentionSizeInMB":2048}}'
    ),
    "acme/reminders": (
        '{"backlog_quota_map":{"message_age":{"limitTime":86400,"policy":"consumer_backlog_eviction"}},'
        '"retention_policies":{"retentionTimeInMinutes":-1,"retentionSizeInMB":-1},"message_ttl_in_seconds":604800}'
    ),
    "acme/logs": "{}",
}
"""Policies of namespaces, as brokers give them; of the one with the hostile name they were not read."""

USUAL = {
    "backlogQuotaDefaultLimitBytes": "10737418240",
    "backlogQuotaDefaultLimitSecond": "-1",
    "backlogQuotaDefaultRetentionPolicy": "producer_exception",
    "defaultRetentionTimeInMinutes": "0",
    "defaultRetentionSizeInMB": "0",
    "ttlDurationDefaultInSeconds": "0",
}
"""What brokers do where a namespace sets nothing."""


class Telling:
    """Writes a ledger as runs would.

    Args:
        writer: Writes it.
    """

    def __init__(self, writer: LedgerWriter) -> None:
        self._writer = writer

    def planned(self, cluster: str, batches: Sequence[Batch], at: datetime, older: Sequence[str] = ()) -> Plan:
        """A plan is recorded, and takes the place of others."""
        policy = a_policy(approval={"response_timeout_minutes": 24 * 60})
        plan = a_plan(
            *batches,
            cluster=cluster,
            snapshot_id=f"{cluster}-{stamp(at)}",
            policy_digest=policy.digest,
            notes=(f"{UNBROKEN}: nothing is proposed.",),
            pulsar_cluster=ClusterIdentity(name=cluster, metadata_id="0123456789abcdef"),
        )
        self._writer.record_plan(plan, at, policy=policy, supersede=older)
        return plan

    def asked(self, plan: Plan, batch_id: str, run: str, at: datetime, **fields: Any) -> None:
        """Somebody is asked."""
        self._writer.record_request(plan, batch_id, run, at, policy=Policy(), asked_digest=ASKED_DIGEST, **fields)

    def answered(
        self, plan: Plan, batch_id: str, run: str, at: datetime, decision: Decision, *, hours: float = 1, **fields: Any
    ) -> int:
        """Somebody answers; every step stays ticked, and an approval counts for so many hours."""
        steps = tuple(step.step_id for step in plan.batch(batch_id).steps) if decision is Decision.APPROVED else ()
        self._last = Answer(
            asked_digest=ASKED_DIGEST,
            plan_id=plan.plan_id,
            batch_id=batch_id,
            run=run,
            decision=decision,
            answered_by="alice",
            answered_at=at,
            reason=f"{decision} in the Airflow UI",
            step_ids=steps,
            digest=approval_digest(plan, batch_id, steps) if steps else None,
            expires_at=at + timedelta(hours=hours) if steps else None,
            **fields,
        )
        return self._writer.record_answer(self._last)

    def carried_out(
        self,
        plan: Plan,
        batch_id: str,
        run: str,
        answer_id: int,
        at: datetime,
        outcomes: Sequence[Outcome],
        reasons: Sequence[str] = (),
    ) -> None:
        """Steps are called and come to an end; the last one has none if there are fewer outcomes than steps."""
        lease = self._writer.take_lease(plan.named_cluster, f"{run}#0a1b", 600, at)
        self._writer.use_answer(answer_id, run, at)
        for place, step in enumerate(plan.batch(batch_id).steps[: len(outcomes) + 1]):
            then = at + timedelta(seconds=20 * place)
            call = an_intended_call(plan, step, self._last, answer_id, before={"owner": broker(0)})
            intent_id = self._writer.record_intent(call, lease, then)
            if place < len(outcomes):
                outcome = StepOutcome(
                    plan_id=plan.plan_id,
                    batch_id=batch_id,
                    step_id=step.step_id,
                    intent_id=intent_id,
                    run=run,
                    at=then + timedelta(seconds=6),
                    outcome=outcomes[place],
                    reason=reasons[place] if reasons else "its owner is the target, and all clients are back",
                    proof={"health": {"level": "fine"}},
                )
                self._writer.record_outcome(outcome)
        if len(outcomes) == len(plan.batch(batch_id).steps):
            self._writer.end_lease(lease, at + timedelta(minutes=2))
            proof = Proof(
                plan_id=plan.plan_id,
                batch_id=batch_id,
                run=run,
                at=at + timedelta(minutes=2),
                proved=True,
                reason="coordinators are spread 8, 4, 4",
                shown={},
            )
            self._writer.record_proof(proof)


def told(url: str) -> dict[str, Plan]:
    """A ledger in which something was done in west, and something is asked and done in east."""
    engine = ledger_at(url)
    writer = LedgerWriter(engine)
    telling = Telling(writer)
    first, run = telling.planned("west", [tc_batch("west")], NOW - 90 * QUARTER), f"{EVERY}/0"
    telling.asked(first, "b1", run, NOW - 90 * QUARTER, requested_by=HOSTILE)
    answer = telling.answered(first, "b1", run, NOW - 89 * QUARTER, Decision.APPROVED, comment='=HYPERLINK("x")')
    telling.carried_out(first, "b1", run, answer, NOW - 89 * QUARTER + timedelta(seconds=5), [Outcome.DONE] * 4)
    older = telling.planned("east", [quota_batch()], NOW - 30 * QUARTER)
    telling.asked(older, "b2", "pulsar_remediate/older/0", NOW - 30 * QUARTER)
    telling.answered(older, "b2", "pulsar_remediate/older/0", NOW - 29 * QUARTER, Decision.REJECTED)
    now = telling.planned("east", [tc_batch("east"), quota_batch()], NOW - QUARTER, [older.plan_id])
    for place, batch_id in enumerate(("b1", "b2")):
        telling.asked(now, batch_id, f"{EVERY}/{place}", NOW - QUARTER)
    answer = telling.answered(now, "b1", run, NOW - timedelta(minutes=2), Decision.APPROVED, comment="go on")
    telling.carried_out(now, "b1", run, answer, NOW - timedelta(minutes=1), [Outcome.DONE, Outcome.DONE])
    telling.planned("north", [], NOW - 90 * QUARTER)
    say(engine, Halt(cluster="north", at=NOW - QUARTER, halted=True, said_by="bob", reason="bookies are being moved"))
    engine.dispose()
    return {"west": first, "older": older, "east": now}


def sources_of(folder: Path, noted: Sequence[Head] = ()) -> Sources:
    """Sources of pages in a folder with ``ledger.db`` and ``snapshots``."""
    url = make_url(f"sqlite:///{folder / 'ledger.db'}")
    return Sources(lambda: open_to_read(url), str(folder / "snapshots"), lambda: NOW, lambda: noted)
