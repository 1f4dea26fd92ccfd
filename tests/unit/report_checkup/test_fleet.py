"""A fleet's check-up: which cluster comes first, what several have in common, and the first screen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
import msgspec

from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.model.trouble import Harm
from pulsar_steward.report.checkup.document import Checkup, CheckupOutcome, as_json
from pulsar_steward.report.checkup.fleet import FleetCheckup, FleetCluster, fleet_checkup
from pulsar_steward.report.checkup.fleet_terminal import SCREEN, fleet_lines
from pulsar_steward.report.checkup.schema import schema
from tests.unit.report_checkup.examples import healthy, partial, troubled

if TYPE_CHECKING:
    from tests.golden import Golden

REFUSED = "GET /admin/v2/brokers/configuration/runtime at b:8080: 401 Unauthorized; renew `token_file`"


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
    golden("\n".join(line.plain for line in fleet_lines(a_fleet(), "fleet.yaml", 80)))


def test_the_first_screen_tells_the_state_of_fifty_clusters() -> None:
    """Header, the worst clusters in a line each, how the others are, and what is in common, on 80 columns."""
    lines = [line.plain for line in fleet_lines(a_fleet(45), "fleet.yaml", 80)][:SCREEN]
    assert max(map(len, lines)) <= 80
    assert lines[1] == "RESULT: 1 critical, 2 unknown, 1 with warnings, 46 healthy"
    assert [line.split()[1] for line in lines[4:8]] == ["east", "shut", "half", "west"]
    assert "401 Unauthorized" in lines[5]
    assert any(line.startswith("and ") and line.endswith(" healthy") for line in lines)
    assert any(line.startswith("In common") for line in lines)
    assert "brokers run 3.0.4" in " ".join(lines)
    every = [line.plain for line in fleet_lines(a_fleet(45), "fleet.yaml", 80, verbose=True)]
    assert sum(line.startswith("HEALTHY ") for line in every) == 46
