"""A check-up's document, and its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest
from pydantic import SecretStr

from pulsar_steward.checks.registry import BY_ID, checks_of
from pulsar_steward.errors import NotAllowed
from pulsar_steward.model.finding import Finding, Outlook, Severity, Verdict
from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm
from pulsar_steward.pages.clusters import USUAL_GAP, seen_of
from pulsar_steward.pulsar.faults import why_refused
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.report.checkup.compose import OTHER, check_reports, counts_of
from pulsar_steward.report.checkup.document import Checkup, CheckupOutcome, as_json
from pulsar_steward.report.checkup.fleet import FleetCheckup, FleetCluster, fleet_checkup
from pulsar_steward.report.checkup.fleet_terminal import SCREEN, fleet_lines
from pulsar_steward.report.checkup.schema import schema, schema_text
from pulsar_steward.report.overview import summary_of
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import NOW, broker
from tests.cases import cases
from tests.unit.cli.conftest import sample
from tests.unit.report_checkup.examples import healthy, partial, troubled
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, skewed, written

if TYPE_CHECKING:
    from tests.golden import Golden
    from tests.unit.report_checkup.conftest import Make

CLEAR = a_verdict("bundle-topic-skew", "clear")
UNKNOWN = a_verdict("tc-skew", "unknown")
FOUND = a_verdict("tc-skew", "found")


@cases(
    "severities, verdicts, outcome, code",
    ("all clear", [], [CLEAR], CheckupOutcome.HEALTHY, 0),
    ("some clear, some unknown", [], [CLEAR, UNKNOWN], CheckupOutcome.HEALTHY, 0),
    ("information only", ["info"], [CLEAR, FOUND], CheckupOutcome.HEALTHY, 0),
    ("a warning", ["warning"], [CLEAR, FOUND], CheckupOutcome.FINDINGS, 1),
    ("critical, and nothing clear", ["critical", "info"], [FOUND], CheckupOutcome.FINDINGS, 1),
    ("all unknown", [], [UNKNOWN], CheckupOutcome.COULD_NOT_LOOK, 2),
    ("no verdict at all", [], [], CheckupOutcome.COULD_NOT_LOOK, 2),
    ("information, and nothing clear", ["info"], [FOUND, UNKNOWN], CheckupOutcome.COULD_NOT_LOOK, 2),
)
def test_the_outcome_and_its_exit_code(
    checkup_with: Make, severities: list[str], verdicts: list[dict[str, object]], outcome: CheckupOutcome, code: int
) -> None:
    """The exit code is 1 with a warning or worse, else 0 with a clear check, else 2, as the check-up could not look."""
    made = checkup_with(findings=[a_finding(severity) for severity in severities], verdicts=verdicts)

    assert (made.outcome, made.outcome.exit_code) == (outcome, code)


def test_heartbeats_of_brokers_are_no_topics_and_no_bundles(checkup_with: Make) -> None:
    """An empty cluster has none: each broker checks itself by a topic of its own."""
    beat = {"namespace": f"pulsar/{broker(0)}", "bundle": "0x00000000_0xffffffff", "owner": broker(0), "topics": 1}
    rows = [{"broker": broker(0), "read": True, "leader": True, "topics": 1, "read_milliseconds": 3}]
    about = checkup_with(brokers=rows, bundles=[beat]).about

    assert (about.topics, about.bundles) == (0, 0)


def test_every_check_of_the_catalog_is_there_in_its_order(checkup_with: Make) -> None:
    """The check-up lists all checks in catalog order, each with a reason; those without a verdict are unknown."""
    checks = checkup_with().checks

    assert [check.check_id for check in checks] == list(checks_of(System.PULSAR))
    assert all(check.reason for check in checks)
    assert {check.outlook for check in checks if check.check_id not in {"tc-skew", "bundle-topic-skew"}} <= {
        Outlook.UNKNOWN
    }


def test_a_check_that_only_the_snapshot_knows_is_reported() -> None:
    (known, unknown) = check_reports(
        [Finding(check_id="of-tomorrow", severity=Severity.WARNING, subject="s", evidence="e")],
        [],
        catalog={"tc-skew": BY_ID["tc-skew"]},
    )

    assert known.outlook is Outlook.UNKNOWN
    assert (unknown.check_id, unknown.section, unknown.outlook) == ("of-tomorrow", OTHER, Outlook.FOUND)
    assert unknown.reason == "e"


def test_findings_come_worst_first_and_those_not_listed_are_counted() -> None:
    findings = [
        Finding(check_id="tc-skew", severity=severity, subject=subject, evidence="e")
        for severity, subject in ((Severity.INFO, "a"), (Severity.CRITICAL, "b"), (Severity.WARNING, "c"))
    ]
    verdict = Verdict(check_id="tc-skew", outlook=Outlook.FOUND, reason="e And 1,101 more.", more=1099)

    (report,) = check_reports(findings, [verdict], catalog={"tc-skew": BY_ID["tc-skew"]})

    assert [finding.subject for finding in report.findings] == ["b", "c", "a"]
    assert (report.severity, report.not_listed) == (Severity.CRITICAL, 1099)


def test_a_partial_snapshot_names_what_is_unread(checkup_with: Make) -> None:
    broker = {"broker": "broker-09:8080", "read": False, "leader": False, "read_milliseconds": 3}
    about = checkup_with(
        snapshot=meta(unread_brokers=["broker-09:8080"], unread_namespaces=["acme/orders"]),
        brokers=[broker | {"failure": "refused"}],
    ).about

    assert not about.complete
    assert [(each.kind, each.name, each.reason) for each in about.unread] == [
        ("broker", "broker-09:8080", "refused"),
        ("namespace", "acme/orders", None),
    ]
    assert (about.brokers, about.brokers_read) == (1, 0)


def test_what_would_be_proposed_is_said_in_short(checkup_with: Make) -> None:
    """A proposed batch is listed with its kind, its title, its number of steps and whether it can be undone."""
    (batch,) = checkup_with(**skewed()).planning.batches

    assert (batch.kind, batch.steps, batch.undoable) == ("tc_balance", 4, True)
    assert "16 transaction coordinators" in batch.title


def test_all_who_count_findings_tell_the_same_numbers(tmp_path: Path) -> None:
    """Check-up and overview, which pages and metrics show, count all findings and the listed ones alike."""
    verdicts = [
        a_verdict("tc-skew", "found", more=9, critical={"a/b": 4}, warning={"": 3}),
        a_verdict("hot-bundle", "found", more=5),
    ]
    findings = [a_finding(), a_finding("info"), a_finding("warning", "hot-bundle")]
    snapshot = open_snapshot(written(tmp_path / "snapshot", findings=findings, verdicts=verdicts))

    counts = counts_of(check_reports(snapshot.findings(), snapshot.verdicts()))
    seen = seen_of(summary_of(snapshot), NOW, USUAL_GAP)

    assert (counts.critical, counts.warning, counts.info) == (5, 9, 3)
    assert (seen.critical, seen.warning, seen.info, seen.found) == (5, 9, 3, 17)
    assert (counts.listed.pressing + counts.listed.info, seen.listed) == (3, 3)


SHIPPED = Path(__file__).resolve().parents[3] / "docs" / "checkup.schema.json"


@cases(
    "changed",
    ("healthy", {}),
    ("skewed", skewed()),
    ("partial", {"snapshot": meta(unread_brokers=["broker-02:8080"], unread_namespaces=["a/*"])}),
    (
        "standing",
        {"findings": [a_finding("info", snapshots_in_a_row=3, first_seen=meta()[0]["taken_at"])], "verdicts": []},
    ),
)
def test_what_is_written_is_valid(checkup_with: Make, changed: dict[str, Any]) -> None:
    """The JSON document is valid by the schema, and decodes to the same check-up."""
    checkup = checkup_with(**changed)
    text = as_json(checkup)

    jsonschema.Draft202012Validator(schema()).validate(json.loads(text))
    assert msgspec.json.decode(text, type=Checkup) == checkup
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("key", "value"), [("format", "else"), ("version", 1), ("outcome", "fine"), ("checks", {}), ("counts", None)]
)
def test_the_schema_refuses_what_is_none(checkup_with: Make, key: str, value: object) -> None:
    """The schema refuses a document with an invalid value."""
    document = json.loads(as_json(checkup_with())) | {key: value}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(document)


def test_a_missing_field_is_refused(checkup_with: Make) -> None:
    """The schema accepts the document, and refuses it without any one of its top-level fields."""
    document = json.loads(as_json(checkup_with()))
    validator = jsonschema.Draft202012Validator(schema())

    validator.validate(document)
    for left_out in document:
        with pytest.raises(jsonschema.ValidationError, match=f"'{left_out}' is a required property"):
            validator.validate({field: value for field, value in document.items() if field != left_out})


def test_the_shipped_schema_is_the_documents() -> None:
    """`docs/checkup.schema.json` equals the generated schema; `steward schema` writes it anew."""
    assert SHIPPED.read_text(encoding="utf-8") == schema_text()


def test_the_schema_is_a_schema() -> None:
    """The generated schema is valid JSON Schema of the draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(schema())


SENT = AdminSettings(("https://b:8443",), SecretStr("token"), origin="`token_file` of shut in fleet.yaml")
REASON = why_refused(SENT, None, 401, reasoned=False)
REFUSED = str(NotAllowed("GET", "/admin/v2/brokers/configuration/runtime", "b:8443", "Unauthorized", 401, *REASON))


def a_cluster(name: str, result: Checkup | str, region: str | None = None, **about: object) -> FleetCluster:
    """A cluster with a check-up, or with the reason why it has none; `about` changes the check-up's own."""
    if not isinstance(result, str):
        result = msgspec.structs.replace(result, about=msgspec.structs.replace(result.about, cluster=name, **about))
    return FleetCluster.of(name, region, result)


def warned() -> Checkup:
    """A check-up with warnings alone."""
    every = troubled()
    troubles = tuple(each for each in every.troubles if each.severity != "critical")
    counts = msgspec.structs.replace(every.counts, critical=0, checks_clear=1)
    return msgspec.structs.replace(every, counts=counts, troubles=troubles)


def a_fleet(further: int = 0) -> FleetCheckup:
    """Clusters of each health, in two regions, and further ones that are well."""
    well = [a_cluster(f"well-{number:02}", healthy(), "eu", pulsar_version="4.0.7") for number in range(further)]
    return fleet_checkup(
        [
            a_cluster("north", healthy(), "eu"),
            a_cluster("west", warned(), "us", pulsar_version="3.0.4", client_versions=("Pulsar-Java-v2.10.4",)),
            a_cluster("shut", REFUSED, "eu"),
            a_cluster("half", msgspec.structs.replace(healthy(), about=partial().about), "eu"),
            a_cluster("east", troubled(), "us", pulsar_version="3.0.4", client_versions=("Pulsar-Java-v2.10.4",)),
            *well,
        ]
    )


def test_unknown_comes_before_warnings_and_is_never_healthy() -> None:
    """Critical, could not be looked at, partial, warnings, healthy; the outcome is the worst of them."""
    fleet = a_fleet()
    assert [(each.cluster, each.health) for each in fleet.clusters] == [
        ("east", ClusterHealth.CRITICAL),
        ("shut", ClusterHealth.UNKNOWN),
        ("half", ClusterHealth.UNKNOWN),
        ("west", ClusterHealth.WARNING),
        ("north", ClusterHealth.HEALTHY),
    ]
    assert fleet.outcome is CheckupOutcome.COULD_NOT_LOOK
    assert fleet_checkup([a_cluster("a", healthy()), a_cluster("b", troubled())]).outcome.exit_code == 1
    assert fleet_checkup([a_cluster("a", healthy())]).outcome.exit_code == 0


def test_of_two_critical_clusters_the_worse_harm_comes_first() -> None:
    """Whatever the numbers of findings, and by name where all is equal."""
    worse = troubled()
    cut_off = msgspec.structs.replace(worse.troubles[0], harm=Harm.CUT_OFF)
    worse = msgspec.structs.replace(worse, troubles=(cut_off,), counts=partial().counts)
    clusters = [a_cluster("b", troubled()), a_cluster("z", worse), a_cluster("a", troubled())]
    assert [each.cluster for each in fleet_checkup(clusters).clusters] == ["z", "a", "b"]


def test_a_trouble_of_several_clusters_is_told_once_with_what_only_they_share() -> None:
    """Versions and regions of all of them that most others are without; versions of the whole fleet tell nothing."""
    common = {each.check_id or each.words: each for each in a_fleet(1).in_common}
    holes = common["ack-holes"]
    assert holes.clusters == ("east", "west")
    assert holes.shared == ("region us", "brokers run 3.0.4", "clients say Pulsar-Java-v2.10.4")
    assert common["region eu"].clusters == ("shut", "half", "north", "well-00")
    assert common["brokers run 4.0.7"].clusters == ("half", "north", "well-00")
    assert "tc-skew" not in common, "one cluster alone has nothing in common"
    many = [a_cluster(f"c{number}", troubled() if number < 2 else healthy()) for number in range(9)]
    assert [each.shared for each in fleet_checkup(many).in_common if each.check_id] == [()] * 3


def test_the_document_is_valid(golden: Golden) -> None:
    """The schema takes one cluster's document and a fleet's, and tells which of the two is wrong."""
    document = json.loads(as_json(a_fleet()))
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(document)
    assert msgspec.json.decode(json.dumps(document), type=FleetCheckup) == a_fleet()
    del document["clusters"][0]["checkup"]["about"]["brokers"]
    assert [each.message for each in validator.iter_errors(document)] != []
    text = "\n".join(line.plain for line in fleet_lines(a_fleet(), "fleet.yaml", 80))
    golden(text)
    assert "...\n".join(sample("fleet.md")).partition("\n...\n")[2].removesuffix("...\n") in text


def test_the_first_screen_tells_the_state_of_fifty_clusters() -> None:
    """Header, the worst clusters in a line each, how the others are, and what is in common, on 80 columns."""
    lines = [line.plain for line in fleet_lines(a_fleet(45), "fleet.yaml", 80)][:SCREEN]
    assert max(map(len, lines)) <= 80
    assert lines[1] == "RESULT: 1 critical, 2 unknown, 1 with warnings, 46 healthy"
    assert [line.split()[1] for line in lines[4:8]] == ["east", "shut", "half", "west"]
    assert "401 Unauthorized; give valid credentials" in lines[5], "the reason stands below"
    assert any(line.startswith("and ") and line.endswith(" healthy") for line in lines)
    assert any(line.startswith("In common") for line in lines)
    assert "brokers run 3.0.4" in " ".join(lines)
    every = [line.plain for line in fleet_lines(a_fleet(45), "fleet.yaml", 80, verbose=True)]
    assert sum(line.startswith("HEALTHY ") for line in every) == 46
