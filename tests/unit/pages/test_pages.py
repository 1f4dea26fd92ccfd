"""The pages: what they say loudly, that names stay text, and where links lead."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from html import unescape
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest
from markupsafe import escape

from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import Decision, EndReason, Outcome
from pulsar_steward.model.isolation import Reach
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, Touched
from pulsar_steward.outside_text import shown
from pulsar_steward.pages import clusters
from pulsar_steward.pages.html import make_app
from pulsar_steward.pages.sources import SnapshotCache
from pulsar_steward.policy.never_asked import never_asked_entry
from pulsar_steward.report.details import averted
from tests.builders import NOW, a_batch, a_plan, a_step
from tests.cases import cases, row_by_row
from tests.ledgers import ledger_at
from tests.unit.changes.test_kinds import ISOLATION
from tests.unit.pages.conftest import Client, pages_of
from tests.unit.pages.scenes import (
    EVERY,
    HOSTILE,
    QUARTER,
    Telling,
    observed,
    quota_batch,
    sources_of,
    system_bundles,
    tc_batch,
    troubled,
)
from tests.unit.report_checkup.snapshots import meta, skewed

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.ledger.write import LedgerWriter
    from pulsar_steward.model.plan import Plan

    Plans = dict[str, Plan]

LINK = re.compile(r'href="((?:/[^"#]*)?)(?:#([^"]*))?"')
SNOOZE = {"silent_until": NOW + timedelta(days=3)}
NEVER_ASKED = never_asked_entry("acme/x", ["retention"])


def words(client: Client, path: str) -> str:
    """Words that a person reads on a page."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return " ".join(re.sub(r"<[^>]*>", " ", answer.text).split())


def test_cards_say_what_matters(client: Client) -> None:
    """The cluster in the worst health comes first, whoever is halted, and health is beside what Steward does."""
    read = words(client, "/")
    assert read.index("east Pulsar") < read.index("north Pulsar") < read.index("west Pulsar")
    for said in (
        "critical Steward: changing",
        "unknown Steward: halted",
        "healthy Steward: observing",
        "4 troubles, 61 findings (49 listed)",
        "In that snapshot: healthy, as far as could be seen",
        "3 in care, 1 question waits",
        "Stale: seen 10 h ago",
        "Partial:",
        "Unread: broker-02:8080",
        "Halted 15 min ago by bob: bookies are being moved",
        "2 of 4 steps, for 1 min",
        "Evicts messages, how many is not known, in acme/orders 1 step; asked 15 min ago",
        "unanswered it is rejected in 23 h 45 min",
        "22 h 13 min ago: 4 done",
    ):
        assert said in read


def test_many_clusters_are_a_table_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row each, the worst first, plain without scripts; a second look at fifty clusters reads no snapshot anew."""
    ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}").dispose()
    for number in range(50):
        for age in range(2):
            ill = skewed() if number == 49 else {}
            at, name = NOW - timedelta(minutes=15 * age), f"c{number:02}"
            observed(tmp_path / "snapshots", name, at, whole=number != 48, **ill)
    client = pages_of(tmp_path)
    page = client.get("/").text
    assert 'class="card' not in page
    rows = re.findall(r'<tr class="row" data-health="(\w+)"><th scope="row"><a href="/steward/clusters/(\w+)"', page)
    assert rows[:3] == [("critical", "c49"), ("unknown", "c48"), ("healthy", "c00")]
    assert len(rows) == 50
    assert "data-filters hidden" in page
    assert '<th scope="col">Health</th>' in page
    monkeypatch.setattr(clusters, "summary_of", None)
    monkeypatch.setattr(SnapshotCache, "get", _only_kept)
    assert client.get("/").text == page


def _only_kept(cache: SnapshotCache, key: Any, read: Any) -> Any:
    assert key in cache._things, key
    return cache._things[key]


def test_a_halt_beside_the_ledger_is_shown(shown_folder: Path, plans: Plans) -> None:
    """A cluster that another switch halts is halted, with that switch's reason."""
    sources = sources_of(shown_folder)
    reason = "halted by the Airflow variable steward_halt (all); it names no cluster, and so every one is halted"
    sources.halted_elsewhere = {"west": reason}.get
    client = Client(make_app(sources, lambda: None))
    assert "Halted: by the Airflow variable steward_halt (all); it names no cluster" in words(client, "/clusters/west")
    cards = [(each["cluster"], each["health"], each["activity"]) for each in client.get("/api/clusters").json()]
    assert cards == [
        ("east", "critical", "changing the cluster"),
        ("north", "unknown", "halted"),
        ("west", "healthy", "halted"),
    ]


def test_a_cluster_shows_guide_findings_brokers_bundles_and_plans(client: Client) -> None:
    read = words(client, "/clusters/east")
    pages = [client.get(f"/clusters/east?page={page}").text for page in (1, 2)]
    severities = re.findall(r'<tr class="row"><td><span class="pill (critical|warning|info)">', "".join(pages))
    assert len(severities) == 50
    assert list(dict.fromkeys(severities)) == ["critical", "warning", "info"]
    assert severities == sorted(severities, key=["critical", "warning", "info"].index)
    for said in (
        "Findings 50",
        "page 1 of 2",
        "holds 942 MiB of a quota of 1 GiB (94 %). 10 h 30 min 43",
        "broker-00:8080 leader 4,000 8 8 900 1,900 42.5 121.5 88 % 61 % 74 % 31",
        "67 with topics",
        "Backlog 1,020.0 GiB",
        "2026-03-01 11:45:00 Even out 16 transaction coordinators of east over 3 brokers; Evicts messages",
    ):
        assert said in read


def test_findings_are_filtered_and_the_form_remembers(client: Client) -> None:
    page = client.get("/clusters/east?severity=critical&check=ack-holes&text=TOPIC-0&order=oldest")
    read = " ".join(re.sub(r"<[^>]*>", " ", page.text).split())
    assert "Findings 4 asked for" in read
    assert read.index("topic-042") < read.index("topic-028") < read.index("topic-014")
    assert 'value="TOPIC-0"' in page.text
    assert "<option selected>oldest</option>" in page.text
    assert "text=topic&amp;order=severity&amp;page=2" in client.get("/clusters/east?text=topic").text
    assert "finding is like that" in words(client, "/clusters/east?text=nowhere")
    assert "page 2 of 2" in words(client, "/clusters/east?page=999")


def test_a_bundle_has_an_address(client: Client) -> None:
    """It tells owner, load and a waiting move; a bundle that the snapshot does not have is named as such."""
    name = f"pulsar/system/{system_bundles()[2]['bundle']}"
    read = words(client, f"/clusters/east?bundle={name}")
    assert f"{name} : owned by broker-00:8080, 4 topics, 4 transaction coordinators, 0.5 MB/s in" in read
    assert "a waiting plan moves it to broker-" in read
    assert "The snapshot shows no bundle a/b/&lt;i&gt; : write" in words(client, "/clusters/east?bundle=a/b/<i>")


def test_the_difference_from_an_earlier_look_is_told(client: Client) -> None:
    """The page compares with the snapshot of then, and lists what people said since; other spans are refused."""
    read = words(client, "/clusters/east?since=24h")
    assert "Since 2026-03-01 10:15 UTC (the oldest look that is kept): 2 worse Worse: Consumed messages" in read
    assert "approved in the Airflow UI" in read[read.index("Since 2026") :]
    assert 'id="since"' not in client.get("/clusters/east").text
    assert client.get("/clusters/east?since=2d").status_code == 422


def test_a_finding_has_an_address_of_its_own(client: Client) -> None:
    """The link of a finding leads to this one, not to all whose names begin like it."""
    listed = client.get("/api/clusters/east/findings?check=ack-holes&size=500").json()["findings"]
    subject = quote(listed[0]["subject"])
    assert "<small>1 asked for</small>" in client.get(f"/clusters/east?check=ack-holes&subject={subject}").text
    assert "<small>0 asked for</small>" in client.get(f"/clusters/east?check=ack-holes&subject={subject[:-1]}").text


def test_a_trouble_has_its_trend_beside_it(client: Client) -> None:
    assert re.search(r'class="spark"[^>]*>.*<polyline points="0.0,', client.get("/clusters/east").text)


def test_a_plan_shows_each_step_before_and_after(client: Client, plans: Plans) -> None:
    """The plan page shows each step's brokers, guards, clients, answers and outcome, and how to roll back."""
    read = words(client, f"/plans/{plans['east'].plan_id}")
    for said in (
        "changing Even out 16 transaction coordinators of east over 3 brokers b1, tc_balance",
        "32 clients reconnect; 8 transaction coordinators pause. All steps can be reverted.",
        "approved alice , 2026-03-01 11:58:00: 4 of 4 steps, good until 2026-03-01 12:58:00 go on",
        "2 done, 1 under way, 1 to come",
        "broker-00:8080 16 8",
        "b1.s01 pulsar/system/0x00000000_0x00000001 broker-00:8080 broker-01:8080 8 3 passed done",
        "under way 20 s",
        "LETS BROKERS DELETE MESSAGES",
        "The size quota can be reverted; deleted messages cannot.",
        "not set 40 GiB; when exceeded, evict oldest unread",
    ):
        assert said.replace(" .", ".").replace(" ,", ",") in read.replace(" .", ".").replace(" ,", ",")
    page = client.get(f"/plans/{plans['west'].plan_id}").text
    assert f'"plan_id": "{plans["west"].plan_id}", "batch_id": "b1"'.replace('"', "&#34;") in page or (
        f'"plan_id": "{plans["west"].plan_id}", "batch_id": "b1"' in page
    )


def test_a_superseded_plan_says_so(client: Client, plans: Plans) -> None:
    """The page of a superseded plan says that an answer changes nothing, and links to the newer plan."""
    page = client.get(f"/plans/{plans['older'].plan_id}").text
    assert "an answer to this one changes nothing" in page
    assert f'href="/steward/plans/{plans["east"].plan_id}"' in page


def test_a_question_that_ended_says_why(tmp_path: Path, writer: LedgerWriter) -> None:
    """A plan's page says why a question ended, links to the later plan, and marks batches that are asked elsewhere."""
    plan, later = a_plan(a_batch(), a_batch(batch_id="b2")), a_plan(snapshot_id="later")
    asked = NewQuestion(batch_id="b1", content_digest="0" * 64, goal="tc_balance")
    writer.record_plan(plan, NOW, questions=QuestionChanges(asked=(asked,)))
    end = Ending(question_id=1, reason=EndReason.CHANGED, by_batch_id="b1", words="it was seen otherwise")
    writer.record_plan(later, NOW, questions=QuestionChanges(ended=(end,)))
    client = pages_of(tmp_path)
    read = words(client, f"/plans/{plan.plan_id}")
    assert "The question ended : it was seen otherwise The later plan" in read
    assert "question ended made up" in read
    assert "asked elsewhere made up" in read
    assert f'href="/steward/plans/{later.plan_id}"' in client.get(f"/plans/{plan.plan_id}").text


def test_what_rejecting_means_is_on_the_page(tmp_path: Path, writer: LedgerWriter) -> None:
    """The plan's and the step's page say what a rejection loses, for the step that averts it only."""
    before, after = TimeToLive(seconds=3600), TimeToLive(seconds=7200)
    change = ChangeSetting(namespace="a/b", name=SettingName.TTL, before=before, after=after)
    averts = Loss(more=2, messages=12, bytes=3 << 20)
    plan = a_plan(a_batch(a_step(change, averts=averts), a_step(change, step_id="b1.s02")))
    writer.record_plan(plan, NOW)
    client, said = pages_of(tmp_path), averted(averts)
    assert "12 entries waiting in 2 topics" in said
    assert words(client, f"/plans/{plan.plan_id}").count(f"If not done: {said}") == 1
    assert f"If not done {said}" in words(client, f"/plans/{plan.plan_id}/steps/b1.s01")
    assert "If not done" not in words(client, f"/plans/{plan.plan_id}/steps/b1.s02")


def test_one_of_a_thing_is_not_several(tmp_path: Path, writer: LedgerWriter) -> None:
    """The pages of a plan with one step that touches one client use singular nouns."""
    plan = a_plan(a_batch(a_step(touched=Touched(producers=1, consumers=0, topics=1, coordinators=1))))
    writer.record_plan(plan, NOW)
    client = pages_of(tmp_path)
    read = words(client, f"/plans/{plan.plan_id}")
    assert "1 client reconnects; 1 transaction coordinator pauses." in read
    read = words(client, f"/plans/{plan.plan_id}/steps/b1.s01")
    assert "1 producer, 0 consumers, 1 topic, 1 coordinator" in read


@cases(
    "decision, fields, read",
    ("until worse", Decision.SNOOZED, SNOOZE | {"until_worse": True}, "or until it gets worse"),
    ("for some days", Decision.SNOOZED, SNOOZE, "silent until 2026-03-04 12:00:00;"),
    ("for ever", Decision.NEVER, {"policy_entry": NEVER_ASKED}, "acme/x: approval: never_ask:"),
)
def test_what_is_silent_says_until_when(
    tmp_path: Path, writer: LedgerWriter, decision: Decision, fields: dict[str, Any], read: str
) -> None:
    """The plan page says how long a batch is silent and how to end that, and the cluster page says by whom."""
    plan = a_plan(a_batch(title="a time to live"))
    writer.record_plan(plan, NOW)
    Telling(writer).answered(plan, "b1", "dag/run/0", NOW, decision, comment="after the fair", **fields)
    client = pages_of(tmp_path)
    of_plan, of_cluster = words(client, f"/plans/{plan.plan_id}"), words(client, f"/clusters/{plan.cluster}")
    assert read in of_plan
    assert "steward questions ask-again 1" in of_plan
    for each in (
        "1 muted proposal",
        "a time to live",
        f"{decision.value} 0 s ago by alice",
        "after the f",
    ):
        assert each in of_cluster
    (silent,) = client.get(f"/api/clusters/{plan.cluster}").json()["silent"]
    assert (silent["decision"], silent["by"]) == (decision.value, "alice")
    state = client.get(f"/api/plans/{plan.plan_id}").json()["batches"][0]["state"]
    assert state == {Decision.SNOOZED: "snoozed", Decision.NEVER: "never asked"}[decision]


def test_a_steps_whole_life(client: Client, plans: Plans) -> None:
    """A step's page shows its events from the plan to its outcome, without those of other steps."""
    read = words(client, f"/plans/{plans['east'].plan_id}/steps/b1.s01")
    assert "3 producers, 5 consumers, 4 topics, 2 coordinators" in read
    assert "PUT /admin/v2/namespaces/pulsar/system/" in read
    life = read[read.index("Its whole life") :]
    assert [
        each in life for each in ("planned", "asked", "answered", "taken up", "about to call", "ended", "b1.s02")
    ] == [*[True] * 6, False]


def test_history_tells_who_and_what(client: Client) -> None:
    """The history is filtered by namespace and person, and its rows count as checked only after they were compared."""
    assert "not compared Rows 38" in words(client, "/history")
    read = words(client, "/history?namespace=acme/orders&person=ALI")
    assert "rejected: rejected in the Airflow UI" in read
    assert "halted" not in read
    assert "as written The ledger's chain" in words(client, "/chain").replace("&#39;", "'")
    assert "as written 38 rows compared" in words(client, "/history")


def test_from_a_question_to_its_batch_and_back(client: Client, plans: Plans) -> None:
    """The tab beside a question redirects to its batch, and the page of all clusters links to that question."""
    dag, run, index = EVERY.partition("/")[0], EVERY.partition("/")[2], 1
    answer = client.get(f"/question?dag_id={dag}&run_id={run.replace('+', '%2B')}&map_index={index}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/steward/plans/{plans['east'].plan_id}#b2")
    quoted = run.replace(":", "%3A").replace("+", "%2B")
    there = f"/dags/{dag}/runs/{quoted}/tasks/batch.approve/mapped/{index}/required_actions"
    assert f'href="{there}"' in client.get("/").text
    assert client.get("/question?dag_id=other&run_id=x").status_code == 404


@row_by_row(
    "path", "/", "/clusters/east", "/clusters/east?severity=info", "/history", "/history?person=" + "%22%3E%3Cscript%3E"
)
def test_names_stay_text(client: Client, path: str) -> None:
    """A name with markup, script or direction marks is shown on the pages as escaped text."""
    page = client.get(path).text
    assert "<script>window" not in page
    assert '"><script>' not in page
    assert "\u202e" not in page
    assert HOSTILE not in page
    if path in {"/clusters/east", "/clusters/east?severity=info", "/history"}:
        assert str(escape(shown(HOSTILE))) in page


def test_every_page_forbids_what_is_not_its_own(client: Client, plans: Plans) -> None:
    """Headers forbid foreign content on pages, also on a missing one, and a page loads only the application's files."""
    for path in ("/", f"/plans/{plans['east'].plan_id}", "/plans/none", "/api/clusters", "/assets/steward.js"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    page = client.get("/clusters/east").text
    assert " style=" not in page
    assert "<script>" not in page
    assert set(re.findall(r'src="([^"]*)"', page)) == {"/steward/assets/steward.js"}


def test_every_link_leads_somewhere(client: Client, plans: Plans) -> None:
    """Every link from a page to another page of the application answers with status 200, and has its place there."""
    pages = (
        "/",
        "/clusters/east",
        "/clusters/east/troubles/tc-skew.at-restart",
        "/clusters/east/troubles/backlog-near-quota.soon",
        f"/plans/{plans['east'].plan_id}",
        f"/plans/{plans['west'].plan_id}/steps/b1.s04",
        "/history",
    )
    links = {
        (unescape(link) or f"/steward{page}", unescape(place))
        for page in pages
        for link, place in LINK.findall(client.get(page).text)
        if not link or link.startswith("/steward/")
    }
    assert len(links) > 25
    asked = {link: client.get(link.removeprefix("/steward")) for link, _ in links}
    assert {link: answer.status_code for link, answer in asked.items() if answer.status_code != 200} == {}
    there = {link: set(map(unescape, re.findall(r' id="([^"]*)"', answer.text))) for link, answer in asked.items()}
    assert {(link, place) for link, place in links if place and unquote(place) not in there[link]} == set()


def test_one_verdict_wherever_it_is_read(client: Client) -> None:
    """Card, page and JSON of a snapshot tell the same numbers, and each finding has one trouble, which has a page."""
    card = client.get("/api/clusters/east").json()
    troubles = {each["trouble_id"]: each for each in client.get("/api/clusters/east/troubles").json()}
    for severity in ("critical", "warning", "info"):
        assert sum(each["found"][severity] for each in troubles.values()) == card["seen"][severity]
    for page in (words(client, "/"), words(client, "/clusters/east")):
        assert f"{card['found']['verdict']} " in page
        assert all(each["headline"] in unescape(page) for each in card["found"]["worst"])
    findings = client.get("/api/clusters/east/findings?size=500").json()["findings"]
    of = Counter((each["trouble_id"], each["severity"]) for each in findings)
    not_listed = card["seen"]["critical"] + card["seen"]["warning"] + card["seen"]["info"] - len(findings)
    every = Counter(
        {(name, level): number for name, each in troubles.items() for level, number in each["found"].items()}
    )
    assert {name for name, _ in of} == set(troubles)
    assert (of <= every, (every - of).total()) == (True, not_listed)
    assert len({(each["check_id"], each["severity"], each["subject"]) for each in findings}) == len(findings)


def test_a_trouble_has_a_page(client: Client, plans: Plans) -> None:
    """It has the sentence, the plot with its limit, commands to copy, the plan, and whom it meets."""
    growing = client.get("/clusters/east/troubles/backlog-growing.soon").text
    assert 'aria-label="persistent://acme/orders/topic-001 over 8 snapshots, with its limit"' in growing
    assert 'class="limit"' in growing
    holes = client.get("/clusters/east/troubles/ack-holes.at-restart").text
    command = "pulsar-admin topics stats-internal persistent://acme/orders/topic-000"
    assert f'<code>{command}</code><button type="button" data-copy>Copy</button>' in holes
    read = words(client, "/clusters/east/troubles/ack-holes.at-restart")
    assert "24 topics in 1 namespace, since 2026-03-01 00:30 UTC. Restart no broker" in read
    assert "14 more, not listed here." in read
    assert "No plan: people have to act." in read
    assert read.index("topic-042 persistent") < read.index("topic-028 persistent") < read.index("topic-000 persistent")
    skewed = client.get("/clusters/east/troubles/tc-skew.at-restart").text
    assert f'href="/steward/plans/{plans["east"].plan_id}#b1"' in skewed
    assert "approved in the Airflow UI" in skewed
    assert 'id="trend"' not in skewed, "the cluster's backlog tells nothing of its coordinators"


def test_a_trouble_that_is_over_says_where_to_go(client: Client) -> None:
    """An unknown trouble of a known cluster answers 404 with a link to the cluster."""
    answer = client.get("/clusters/east/troubles/none.soon")
    assert answer.status_code == 404
    assert '<a href="/steward/clusters/east">east and its troubles now</a>' in answer.text


def test_what_is_not_there_is_not_there(client: Client) -> None:
    """A missing page answers 404 and says what is missing, as a page and as a document."""
    for path in ("/clusters/nowhere", "/plans/none", "/clusters/east/../..%2f", "/assets/app.py"):
        assert client.get(path).status_code == 404
    assert "no cluster &#39;nowhere&#39; is known" in client.get("/clusters/nowhere").text
    answer = client.get("/api/plans/none")
    assert (answer.status_code, answer.json()) == (404, {"detail": "the ledger holds no plan 'none'"})


def test_a_stopped_plan_tells_its_steps_by_result(tmp_path: Path, writer: LedgerWriter) -> None:
    """The step that went wrong comes first; steps that were not tried were not run; two links lead on."""
    telling, run = Telling(writer), "pulsar_remediate/r/0"
    plan = telling.planned("east", [tc_batch("east")], NOW)
    telling.asked(plan, "b1", run, NOW)
    answer = telling.answered(plan, "b1", run, NOW, Decision.APPROVED)
    found, skipped = "planned from broker-02, found on broker-04", "not tried: b1.s02 stopped the batch"
    outcomes = [Outcome.DONE, Outcome.DRIFTED, Outcome.REFUSED, Outcome.REFUSED]
    telling.carried_out(plan, "b1", run, answer, NOW, outcomes, ["moved", found, skipped, skipped])
    client = pages_of(tmp_path)
    read = words(client, f"/plans/{plan.plan_id}").replace(" ,", ",")
    for said in ("1 done, 1 drifted, 2 not run", f"Stopped at b1.s02, drifted: {found}", "Undo 1", "Plan anew"):
        assert said in read
    table = read[read.index("Outcome") :]
    assert table.index("b1.s02") < table.index("b1.s03") < table.index("b1.s01")
    (batch,) = client.get(f"/api/plans/{plan.plan_id}").json()["batches"]
    assert (batch["results"], batch["undoable"]) == ({"done": 1, "drifted": 1, "not run": 2}, 1)


def test_a_rejected_batch_was_not_run(client: Client, plans: Plans) -> None:
    """The steps of a rejected batch are shown as not run, with the reason."""
    read = words(client, f"/plans/{plans['older'].plan_id}")
    assert "1 not run (rejected)" in read


def test_no_page_loads_itself_again(client: Client) -> None:
    """What changes is put in its place: a page that loads itself again closes folds and loses the reader's row."""
    assert "location.reload" not in client.get("/assets/steward.js").text
    assert "http-equiv" not in client.get("/").text


def test_a_ledger_that_is_not_there_is_said(tmp_path: Path) -> None:
    """The pages answer 503 with the reason when there is no ledger, and create no file."""
    answer = pages_of(tmp_path).get("/")
    assert (answer.status_code, "the first run of a DAG makes it" in answer.text) == (503, True)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_snapshot_hides_nothing_else(copied: Path) -> None:
    """The pages say that a snapshot cannot be read, and still show what the ledger holds."""
    broken = copied / "snapshots" / "cluster=east" / "taken_at=20260301T120000Z"
    for name in ("snapshot", "findings", "verdicts"):
        (broken / name).mkdir(parents=True)
        (broken / name / "part-0.parquet").write_bytes(b"no parquet")
    (broken / "_SUCCESS").touch()
    for path in ("/", "/clusters/east"):
        read = words(pages_of(copied), path)
        for said in ("Not known.", "cannot be read", "Even out 16 transaction coordinators of east"):
            assert said in read


def test_a_snapshot_that_is_broken_in_part(copied: Path) -> None:
    """The cluster page shows the readable parts of a damaged snapshot, and says that the others are not shown."""
    observed(copied / "snapshots", "east", NOW)
    (part,) = (copied / "snapshots").glob("*/*/bundles/*.parquet")
    part.write_bytes(b"no parquet")
    read = words(pages_of(copied), "/clusters/east")
    for said in ("0 critical", "Not shown:", "Even out 16 transaction coordinators of east"):
        assert said in read


def test_very_many_brokers_and_bundles(copied: Path) -> None:
    """The page lists the fullest and the unread brokers, all of them on request, and sums up small bundles."""
    brokers = [
        {"broker": f"b-{place:03d}:1", "read": place > 0, "leader": False, "topics": place, "read_milliseconds": 1}
        for place in range(150)
    ]
    bundles = [
        {"namespace": "a/b", "bundle": f"{place}", "owner": f"b-{place % 50:03d}:1", "owner_known": True, "topics": 3}
        for place in range(50 * 70)
    ]
    observed(copied / "snapshots", "east", NOW, brokers=brokers, bundles=bundles)
    client = pages_of(copied)
    read = words(client, "/clusters/east")
    assert "The 100 with most topics, and those that were not read. All 150" in read
    assert ("b-000:1 unread" in read, "b-149:1 149" in read, "b-003:1 3" in read) == (True, True, False)
    assert "10 smaller bundles: 30 topics" in client.get("/clusters/east").text
    assert "and 10 brokers with fewer topics" in read
    assert "b-003:1 3" in words(client, "/clusters/east?brokers=all")


def test_reading_that_took_minutes_is_told_beside_the_age(copied: Path) -> None:
    """A cluster's page and its data say from when to when brokers were read, and count the age from before."""
    at = NOW - timedelta(minutes=10)
    span = {"read_from": at, "read_until": at + timedelta(minutes=7)}
    head = meta(snapshot_id="east-1", cluster="east", pulsar_cluster="east", taken_at=at, **span)
    observed(copied / "snapshots", "east", at, snapshot=head)
    client = pages_of(copied)
    words_of_span = f"read {at:%Y-%m-%d %H:%M:%S} to {at + timedelta(minutes=7):%H:%M:%S} UTC"
    assert f"seen 10 min ago ({words_of_span})" in words(client, "/clusters/east")
    card = next(each for each in client.get("/api/clusters").json() if each["cluster"] == "east")
    assert (card["seen"]["span"], card["seen"]["age_seconds"]) == (words_of_span, 600)


def test_a_partial_and_stale_cluster_says_so_on_its_own_page(client: Client) -> None:
    """The page of a cluster with a stale, partial snapshot says so before all else, and beside its empty findings."""
    read = words(client, "/clusters/north")
    for said in ("Stale: seen 10 h ago", "Partial: 2 of 3 brokers read.", "Unread: broker-02:8080"):
        assert read.index(said) < read.index("Guide five sections")
    assert "Nothing was found. But the snapshot is partial." in read
    assert "No look since" in words(client, "/clusters/north?since=8h")


def test_a_plan_that_waits_says_how_old_its_look_is(tmp_path: Path, writer: LedgerWriter) -> None:
    """Whoever answers sees that observations stopped; findings are no older than the last look."""
    telling = Telling(writer)
    plan = telling.planned("late", [quota_batch()], NOW - 30 * QUARTER)
    telling.asked(plan, "b2", f"{EVERY}/7", NOW - QUARTER)
    at = NOW - 40 * QUARTER
    observed(tmp_path / "snapshots", "late", at, **troubled(1, at))
    client = pages_of(tmp_path)

    assert "Stale: seen 10 h ago" in words(client, f"/plans/{plan.plan_id}")
    assert "10 h 45 min" not in words(client, "/clusters/late?size=500")


def test_a_forecast_of_restarts_warns_of_them(client: Client) -> None:
    """Some seconds without service are not the worst of it where clients could not come back."""
    read = words(client, "/clusters/east")
    restarts = read[read.index("Restarts how long") :]
    assert restarts.index("Restart no broker") < restarts.index("Clean shutdown")


def test_information_is_no_further_trouble(client: Client) -> None:
    """The headline does not count it."""
    assert "1 for information" in words(client, "/clusters/east")


def test_a_cluster_that_was_planned_for_and_never_observed(copied: Path, plans: Plans) -> None:
    """The page of a cluster without snapshots shows what the ledger holds, and says that the rest is not known."""
    client = pages_of(copied)
    read = words(client, "/clusters/east")
    assert "Not known. It was never observed, or its snapshots were removed." in read
    assert "Even out 16 transaction coordinators of east" in read
    assert "2 done, 1 under way, 1 to come" in words(client, f"/plans/{plans['east'].plan_id}")
    assert client.get("/api/clusters/east/backlogs").status_code == 404


def test_every_table_that_scrolls_can_be_reached_by_keyboard(client: Client, plans: Plans) -> None:
    """Every part that scrolls takes the focus and has a name, and headings go down by one level at most."""
    plan = f"/plans/{plans['east'].plan_id}"
    scrolls: dict[str, list[str]] = {
        "/": [],
        "/clusters/east": ["Findings", "Brokers", "Restarts", "Backlog", "Delayed messages", "Plans"],
        "/clusters/east/troubles/ack-holes.at-restart": ["Affected"],
        plan: ["Steps of b1", "Done steps of b1", "Steps of b2", "Placement and load", "Events"],
        f"{plan}/steps/b1.s01": ["Events"],
        "/history": ["Events"],
    }
    for path, names in scrolls.items():
        page = client.get(path).text
        scrolling = re.findall(r'<div class="scroll[^>]*>', page)
        assert all('role="region"' in each and 'tabindex="0"' in each for each in scrolling)
        assert [name for each in scrolling for name in re.findall(r'aria-label="([^"]+)"', each)] == names, path
        levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", page[: page.index("<dialog")])]
        assert levels[0] == 1
        assert all(deeper - level <= 1 for level, deeper in pairwise(levels)), path


@pytest.mark.usefixtures("writer")
def test_before_anything_was_observed(tmp_path: Path) -> None:
    """The pages say so where no cluster was observed and the ledger is empty."""
    client = pages_of(tmp_path)
    assert "No cluster was observed yet." in words(client, "/")
    assert "Nothing of that kind is in the ledger." in words(client, "/history")


def test_a_steps_page_names_all_that_a_policy_matches(tmp_path: Path, writer: LedgerWriter) -> None:
    """An approval is of these namespaces and brokers, however many there are."""
    names = tuple(f"shop/n{number:02}" for number in range(40))
    step = a_step(ISOLATION, reach=Reach(names, ("10.0.1.1:8080",)))
    plan = Telling(writer).planned("east", [a_batch(step)], NOW)
    read = words(pages_of(tmp_path), f"/plans/{plan.plan_id}/steps/b1.s01")
    assert f"Matches {', '.join(names)}, 10.0.1.1:8080" in read
