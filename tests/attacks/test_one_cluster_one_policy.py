"""One cluster is changed under one policy, whatever it is called: a second name is no way round what one protects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import PolicyError
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.orchestration import connections
from pulsar_steward.orchestration.observing import notes_on_policies
from pulsar_steward.policy.load import load_policy
from tests.apply.refusals import assert_refused
from tests.apply.worksite import said

if TYPE_CHECKING:
    from pathlib import Path

    from tests.apply.worksite import Worksite
    from tests.attacks.conftest import Connect

STRICT = "apply: {protected_namespaces: ['pulsar/*'], proof_timeout_seconds: 1}\n"
LOOSE = "apply: {protected_namespaces: [], proof_timeout_seconds: 1}\n"
OWN = {
    "values of its own in the shared file": {"policy.yaml": f"clusters:\n  east:\n    {STRICT}"},
    "a file of its own": {"policy.yaml": LOOSE, "policies/east.yaml": STRICT},
    "a file of its own each": {"policies/west.yaml": LOOSE, "policies/east.yaml": STRICT},
}


def under(site: Worksite, home: Path, name: str, files: dict[str, str]) -> Worksite:
    """The same brokers by another name, with the policy that is in force for it by these files."""
    for file, text in files.items():
        (home / file).parent.mkdir(exist_ok=True)
        (home / file).write_text(text, encoding="utf-8")
    other = replace(site, cluster=name, broker=2)
    other.policy = connections.policy_of(name)
    return other


def notes(site: Worksite) -> list[str]:
    """Notes on policies that a plan for a worksite's name has."""
    with site.context() as context:
        return list(notes_on_policies(context, NamedCluster(site.cluster, site.identity)))


@pytest.mark.parametrize("files", OWN.values(), ids=OWN)
def test_a_second_name_is_no_way_round_a_stricter_policy(site: Worksite, home: Path, files: dict[str, str]) -> None:
    """A batch is refused where another name of the cluster has a stricter policy of its own, and a plan says so."""
    site.plan(site.move(3))
    west = under(site, home, "west", files)
    plan = west.approved(west.move(0))
    both = (
        "west and east are names of one Pulsar cluster, and the policy in force for west is looser than the one of east"
    )
    assert_refused(west, plan, f"{both}.*apply.protected_namespaces is none")
    (note,) = notes(west)
    assert note.startswith(both)


@pytest.mark.parametrize(
    "files",
    [
        {"policy.yaml": LOOSE},
        {"policies/west.yaml": LOOSE, "policy.yaml": STRICT},
        {"policies/west.yaml": LOOSE, "policies/east.yaml": LOOSE},
        {"policies/west.yaml": LOOSE, "policies/north.yaml": STRICT},
    ],
    ids=["one for both", "the other has none of its own", "the same for both", "that of another cluster"],
)
def test_a_name_without_a_stricter_policy_of_its_own_holds_up_nobody(
    site: Worksite, home: Path, files: dict[str, str]
) -> None:
    """A batch is carried out where no other name of the cluster has a stricter policy of its own."""
    site.plan(site.move(3))
    west = under(site, home, "west", files)
    assert said(west.carry_out(west.approved(west.move(0)))) == ["done"]
    assert notes(west) == []


def test_a_policy_of_another_name_that_cannot_be_compared_is_no_looser_one(site: Worksite, home: Path) -> None:
    """A batch is refused while the policy of another name of the cluster does not hold up."""
    site.plan(site.move(3))
    west = under(site, home, "west", {"policies/west.yaml": LOOSE, "policies/east.yaml": ""})
    assert_refused(
        west, west.approved(west.move(0)), r"the policy of east cannot be compared: .*east\.yaml: it sets nothing"
    )


def test_what_is_never_used_is_a_note_of_every_plan(site: Worksite, home: Path) -> None:
    """A policy file that may be meant for another cluster, and is never used, is told by every plan."""
    (note,) = notes(under(site, home, "west", {"policy.yaml": LOOSE, "policies/north.yml": STRICT}))
    assert "policies/north.yml is never used" in note


@pytest.mark.parametrize("name", ["EAST", "East"])
def test_a_name_in_other_letters_is_an_error(site: Worksite, home: Path, connect: Connect, name: str) -> None:
    """A name that differs only in case from one in `clusters` is an error that names both, and no other cluster."""
    connect(site.simulator, name)
    (home / "policy.yaml").write_text(OWN["values of its own in the shared file"]["policy.yaml"], encoding="utf-8")
    with pytest.raises(PolicyError, match=f"values for 'east', and '{name}' differs .* only in upper and lower case"):
        connections.policy_of(name)
    assert connections.policy_of("east").apply.protected_namespaces == ("pulsar/*",)
    assert connections.policy_of("west").apply.protected_namespaces == ()


def test_two_names_that_differ_only_in_case_are_an_error(home: Path) -> None:
    """Values for two clusters whose names differ only in upper and lower case are an error, with their place."""
    (home / "policy.yaml").write_text(f"clusters:\n  east:\n    {STRICT}  EAST:\n    {LOOSE}", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"policy.yaml:4:3: clusters.EAST: differs only in .* case from east"):
        load_policy(home / "policy.yaml")
