"""A question about several namespaces: all but some are approved, these are changed, and the rest is asked anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lab.simulator import ClusterSpec, NamespaceSpec
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.plan import namespaces_of
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.asked import QuestionBook
from pulsar_steward.orchestration.grouping import grouped
from pulsar_steward.orchestration.publish import SnapshotView, decide
from pulsar_steward.orchestration.question_form import APPROVE, COMMENT, LEFT_OUT, QUESTION, STEPS
from tests.apply.worksite import RUN, a_worksite, quick_policy, said
from tests.builders import ASKED_DIGEST, CLUSTER, a_batch, a_plan, a_step

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.orchestration.publish import Publication
    from tests.apply.worksite import Worksite

NAMES = ("shop/a", "shop/b", "shop/c")
CLUSTER_OF_THREE = ClusterSpec(namespaces=tuple(NamespaceSpec(name) for name in NAMES))
LATER = TimeToLive(seconds=0)


def never_expires(namespace: str) -> Batch:
    """Batch of a namespace, as a planner makes it."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=LATER)
    return a_batch(a_step(change, undo=change.inverse), kind="retention", title=namespace)


def published(site: Worksite, *names: str, snapshot: str) -> tuple[Plan, Publication]:
    """An observation after which these namespaces are proposed, as the task of Airflow publishes it."""
    now, book = site.clock(), QuestionBook(site.ledger, NamedCluster(CLUSTER), site.policy, site.clock())
    batches = [msgspec.structs.replace(never_expires(name), batch_id=f"b{n}") for n, name in enumerate(names, start=1)]
    made = a_plan(
        *batches,
        snapshot_id=snapshot,
        taken_at=now,
        pulsar_cluster=site.identity,
        policy_digest=site.recorded_policy.digest,
    )
    plan = grouped(made, SnapshotView.COMPLETE, book.standing(), book.rejected(), book.silenced(), site.policy)
    known = book.standing(), book.rejected()
    publication = decide(plan, SnapshotView.COMPLETE, *known)
    if publication.record:
        site.record(plan, questions=publication.questions)
    return plan, publication


def answered(site: Worksite, plan: Plan, left_out: list[str]) -> Decision:
    """Somebody is asked, and approves all but these namespaces."""
    site.ask(plan)
    asked = ApprovalQuestion(plan=plan, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
    event = {
        "chosen_options": [APPROVE],
        "params_input": {
            QUESTION: ASKED_DIGEST,
            STEPS: [step.step_id for step in asked.steps],
            LEFT_OUT: left_out,
            COMMENT: "",
        },
        "responded_at": site.clock(),
        "responded_by_user": {"id": "1", "name": "alice"},
    }
    answer = interpret(event, asked, site.policy.approval, site.clock())
    site.writes.record_answer(answer)
    return answer.decision


def test_all_but_one_namespace_are_changed_and_that_one_is_asked_anew(tmp_path: Path) -> None:
    with a_worksite(tmp_path, CLUSTER_OF_THREE) as site:
        site.policy = quick_policy(approval={"decide_by": "tenant"})
        plan, first = published(site, *NAMES, snapshot="first")
        assert [new.goal for new in first.questions.asked] == ["retention shop/a shop/b shop/c"]
        assert answered(site, plan, ["shop/b"]) is Decision.APPROVED
        assert said(site.carry_out(plan)) == ["done", "done"]
        assert site.changes() == ["messageTTL a", "messageTTL c"]
        later, second = published(site, "shop/b", snapshot="second")
        assert [namespaces_of(batch) for batch in later.batches] == [("shop/b",)]
        assert second.ask


def test_a_rejected_group_rests_in_the_ledger_by_its_parts(tmp_path: Path) -> None:
    with a_worksite(tmp_path, CLUSTER_OF_THREE) as site:
        site.policy = quick_policy(approval={"decide_by": "kind"})
        plan, _ = published(site, "shop/a", "shop/b", snapshot="first")
        assert answered(site, plan, ["shop/a", "shop/b"]) is Decision.REJECTED
        later, second = published(site, *NAMES, snapshot="second")
        asked = [namespaces_of(later.batch(new.batch_id)) for new in second.questions.asked]
        assert (asked, second.questions.ended) == ([("shop/c",)], ())
