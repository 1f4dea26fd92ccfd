"""Identity: what is deleted, moved or replaced is the very thing that was planned, in retries and rollbacks too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.apply.applied import what_was_done
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.errors import Refused
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.plan import Plan
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.apply.test_crash import crash
from tests.apply.worksite import a_worksite, quick_policy, said
from tests.builders import CURSOR, a_deletion, a_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.step import Step
    from pulsar_steward.model.subscription import Cursor
    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite

NAMESPACE, TOPIC = "shop/events", "persistent://shop/events/orders"
PARTS = [f"persistent://shop/events/wide-partition-{number}" for number in range(2)]
AUDIT = SubscriptionSpec("audit", backlog=2_000)
SPEC = ClusterSpec(
    brokers=2,
    namespaces=(
        NamespaceSpec(
            NAMESPACE,
            bundles=4,
            topics=(
                TopicSpec("orders", subscriptions=(AUDIT,), storage_bytes=210_000),
                TopicSpec("wide", partitions=2, subscriptions=(AUDIT,), storage_bytes=210_000),
            ),
        ),
    ),
)
"""Of 2,100 entries that are stored, all but the first hundred wait for `audit`, which nobody uses."""

PLANNED = msgspec.structs.replace(CURSOR, position="1:99")
EARLIEST = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
TTL = ChangeSetting(namespace=NAMESPACE, name=SettingName.TTL, before=None, after=TimeToLive(seconds=86_400))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Worksite]:
    """Two brokers, and subscriptions `audit` that the policy lets be deleted."""
    with a_worksite(tmp_path, SPEC) as site:
        site.policy = quick_policy(subscriptions={"delete_abandoned": True})
        yield site


def deletion(topic: str = TOPIC, cursor: Cursor = PLANNED) -> Step:
    """The step that deletes `audit`, with much room for what may be lost."""
    loss = Loss(topics=(TopicLoss(topic=topic, messages=1, bytes=1),), messages=5_000, bytes=1 << 20)
    return a_step(a_deletion(topic, cursor=cursor), step_id="b1.s01", loss=loss)


def by_hand(site: Worksite, method: str, action: str = "", body: Any = None, topic: str = TOPIC) -> None:
    """What a client or an operator does to `audit`."""
    path = f"{topic.replace('://', '/')}/subscription/audit{action}"
    url = f"{site.simulator.admin_urls[0]}/admin/v2/{path}"
    assert httpx.request(method, url, json=body, follow_redirects=True).is_success


def made_anew(site: Worksite, body: Any = EARLIEST) -> None:
    """Deletes `audit`, and makes it anew at a position; None: at the end."""
    by_hand(site, "DELETE")
    by_hand(site, "PUT", body=body)
    site.simulator.requests.clear()


def reset(site: Worksite, entry: int) -> None:
    """Sets `audit` back or forth, to have this entry next."""
    by_hand(site, "POST", "/resetcursor", {"ledgerId": 1, "entryId": entry, "partitionIndex": -1})
    site.simulator.requests.clear()


def subscriptions(site: Worksite, topic: str = TOPIC) -> set[str]:
    index = site.simulator._state.topics[NAMESPACE].by_name
    return {each.name for each in site.simulator._loop.call(lambda: index[topic].spec.subscriptions)}


def deletions(site: Worksite) -> int:
    return sum(record.method == "DELETE" for record in site.simulator.requests.writes())


def spared(site: Worksite, plan: Plan, words: str) -> None:
    """The deletion drifts with these words, and nothing was called."""
    (row,) = site.carry_out(plan)
    assert (row.outcome, words in row.reason) == ("drifted", True), row.reason
    assert (site.untouched(), subscriptions(site)) == (True, {"audit"})


def test_the_planned_subscription_is_deleted(site: Worksite) -> None:
    """A subscription whose cursor is the planned one is deleted: what these attacks change stops the others."""
    assert said(site.carry_out(site.approved(deletion()))) == ["done"]
    assert subscriptions(site) == set()


@pytest.mark.parametrize("position", [EARLIEST, None], ids=["earliest", "latest"])
def test_a_subscription_that_was_made_anew_is_not_deleted(site: Worksite, position: Any) -> None:
    """A subscription that was made anew since the snapshot is left alone, wherever it begins."""
    plan = site.approved(deletion())
    made_anew(site, position)
    spared(site, plan, "was made anew at")


def test_a_subscription_that_was_made_anew_at_the_same_position_is_not_deleted(site: Worksite) -> None:
    """A subscription that never consumed is told from one that was made anew at the same position."""
    reset(site, 0)
    site.simulator.change_subscription(TOPIC, "audit", cursor_ledger=-1, cursor_entry=-1)
    plan = site.approved(deletion(cursor=CURSOR))
    made_anew(site)
    with LiveReader(site.settings) as reader:
        state = reader.subscription(a_deletion(TOPIC))
    assert state is not None
    assert state.cursor is not None
    assert (state.cursor.position, state.cursor.written) == (CURSOR.position, CURSOR.written)
    spared(site, plan, "was made anew at")


@pytest.mark.parametrize(
    ("entry", "words"), [(0, "at position 1:-1"), (150, "at position 1:149"), (100, "was written")]
)
def test_a_subscription_that_was_reset_is_not_deleted(site: Worksite, entry: int, words: str) -> None:
    """A subscription that was reset since the snapshot is left alone: back, forth, or to where it was."""
    plan = site.approved(deletion())
    reset(site, entry)
    spared(site, plan, words)


def test_a_topic_that_was_loaded_anew_has_the_same_subscription(site: Worksite) -> None:
    """An unload and load of the topic, and messages that came, change nothing of which subscription it is."""
    plan = site.approved(deletion())
    bundle = site.simulator._state.bundle_of(TOPIC)
    site.simulator._loop.call(site.simulator._state.unload, bundle)
    site.simulator._loop.call(site.simulator._state.load, bundle)
    assert said(site.carry_out(plan)) == ["done"]


def test_a_subscription_that_is_made_anew_during_a_crash_is_not_deleted(site: Worksite) -> None:
    """A client makes it anew between the deletion and its outcome, the worker dies: one call, and the new one stays."""
    plan = site.approved(deletion())
    crash(site, plan, after="DELETE")
    by_hand(site, "PUT", body=EARLIEST)
    (row,) = site.carry_out(plan)
    assert (row.outcome, "was made anew at" in row.reason, "no further call" in row.reason) == ("unknown", True, True)
    assert (deletions(site), subscriptions(site)) == (1, {"audit"})


def test_a_deletion_is_not_repeated_where_a_client_is_quicker_than_its_proof(site: Worksite) -> None:
    """A client makes it anew right after the deletion: that is said, and the new one is not deleted."""

    def comes_back(call: Call) -> None:
        if call.method == "DELETE":
            by_hand(site, "PUT", body=EARLIEST)

    (row,) = site.carry_out(site.approved(deletion()), after=comes_back)
    assert (row.outcome, "was made anew at" in row.reason) == ("failed", True), row.reason
    assert (deletions(site), subscriptions(site)) == (1, {"audit"})


def test_the_same_name_on_another_partition_stays(site: Worksite) -> None:
    """Of the subscriptions of one name on all partitions, the planned partition's is deleted alone."""
    assert said(site.carry_out(site.approved(deletion(PARTS[0])))) == ["done"]
    assert [subscriptions(site, part) for part in PARTS] == [set(), {"audit"}]


def test_a_topic_that_was_made_anew_keeps_its_subscription(site: Worksite) -> None:
    """A topic that was deleted and made anew, with a subscription of the same name, is another one."""
    plan = site.approved(deletion())
    url = f"{site.simulator.admin_urls[0]}/admin/v2/{TOPIC.replace('://', '/')}"
    assert all(httpx.request(how, url, follow_redirects=True).is_success for how in ("DELETE", "PUT"))
    by_hand(site, "PUT", body=EARLIEST)
    site.simulator.requests.clear()
    spared(site, plan, "was made anew at")


def test_a_subscription_that_cannot_be_told_from_another_is_not_deleted(site: Worksite) -> None:
    """Where the metadata store keeps no time of creation, as etcd does not, the subscription is left alone."""
    plan = site.approved(deletion())
    site.simulator.change_subscription(TOPIC, "audit", made="1970-01-01T00:00:00Z")
    spared(site, plan, "is not known to be the planned one")


def test_a_plan_that_does_not_say_which_subscription_it_deletes_is_not_read(site: Worksite) -> None:
    """A plan without the identity of the subscription that it deletes cannot be read, so it permits nothing."""
    document = msgspec.json.decode(site.plan(deletion()).encoded())
    del document["batches"][0]["steps"][0]["change"]["cursor"]
    with pytest.raises(msgspec.ValidationError, match="cursor"):
        Plan.decoded(msgspec.json.encode(document).decode())


def test_a_value_that_was_set_back_during_a_crash_stays(site: Worksite) -> None:
    """Somebody sets a value back after the call, the worker dies: the retry does not set it again."""
    plan = site.approved(TTL)
    crash(site, plan, after="POST")
    site.simulator._loop.call(site.simulator._state.set_policy, NAMESPACE, "message_ttl_in_seconds", None)
    (row,) = site.carry_out(plan)
    assert (row.outcome, "no further call" in row.reason) == ("unknown", True), row.reason
    assert len(site.simulator.requests.writes()) == 1


def test_a_value_on_its_way_back_goes_to_no_second_cluster(site: Worksite) -> None:
    """A rollback of a namespace's setting is refused once another cluster serves the namespace as well."""
    plan = site.approved(TTL)
    assert said(site.carry_out(plan)) == ["done"]
    site.simulator._loop.call(site.simulator._state.set_policy, NAMESPACE, "replication_clusters", ["local", "west"])
    with LiveReader(site.settings) as reader:
        done = what_was_done(site.ledger, plan.plan_id, "b1")
        with pytest.raises(Refused, match="one_cluster: west would get it as well"):
            rollback_plan(site.ledger, reader, site.policy, done, site.clock())
