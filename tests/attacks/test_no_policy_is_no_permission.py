"""No policy is no permission: what is no policy, or not the file that is used, is an error and never the defaults."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.orchestration import connections
from pulsar_steward.policy.files import unused_files
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.apply.worksite import Worksite
    from tests.attacks.conftest import Connect

LOOSE = "apply: {protected_namespaces: []}\n"
STRICT = "apply: {protected_namespaces: [shop/orders]}\n"
NOTHING = ["", "\n", "# apply: {protected_namespaces: [shop/orders]}\n", "---\n", "null\n", "~", "{}", "apply: {}"]
NOTHING += ["clusters: {east: {apply: {}}}", "\ufeff", "--- # nothing\n...\n"]


@pytest.fixture
def policies(home: Path) -> Path:
    """The folder of the clusters' own policies, beside a loose one that all share."""
    (home / "policy.yaml").write_text(LOOSE)
    folder = home / "policies"
    folder.mkdir()
    return folder


def test_no_policy_file_is_no_policy(site: Worksite, home: Path, connect: Connect) -> None:
    """A cluster without a policy file is refused unless its connection sets `no_policy_file` to true."""
    connect(site.simulator)
    with pytest.raises(PolicyError, match=r"there is no policy for cluster 'east': .*no_policy_file"):
        connections.policy_of("east")
    connect(site.simulator, no_policy_file="certainly")
    with pytest.raises(ConfigurationError, match="has to be true or false"):
        connections.policy_of("east")
    for yes in (True, "true"):
        connect(site.simulator, no_policy_file=yes)
        assert connections.policy_of("east") == Policy()
    connect(site.simulator)
    (home / "policy.yaml").write_text("apply: {most_clients_per_step: 7}\n", encoding="utf-8")
    assert connections.policy_of("east").apply.most_clients_per_step == 7


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("text", NOTHING)
def test_a_file_that_says_nothing_is_no_policy(
    site: Worksite, home: Path, connect: Connect, text: str, allowed: bool
) -> None:
    """A policy file without a single value is an error that names it, also where no file at all would be allowed."""
    connect(site.simulator, no_policy_file=allowed)
    (home / "policy.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError, match=r"policy\.yaml: it sets nothing, .* `\"no_policy_file\": true`"):
        connections.policy_of("east")


@pytest.mark.parametrize("text", NOTHING)
def test_an_emptied_file_hides_no_other_one(policies: Path, text: str) -> None:
    """An emptied policy of one cluster is an error, and does not put the defaults in the place of the shared one."""
    (policies / "east.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError, match=r"policies/east\.yaml: it sets nothing"):
        connections.policy_of("east")


NEARLY = ["east.yml", "EAST.yaml", "East.YAML", "east.YML", "east", "east.yaml ", " east.yaml", "east .yaml"]


@pytest.mark.parametrize("name", NEARLY)
@pytest.mark.parametrize("right", [False, True], ids=["alone", "beside the right one"])
def test_a_file_that_is_nearly_called_so_is_an_error(policies: Path, name: str, right: bool) -> None:
    """A policy whose name is nearly that of a cluster's is an error: neither is it ignored, nor the shared one used."""
    (policies / name).write_text(STRICT)
    if right:
        (policies / "east.yaml").write_text(LOOSE)
    with pytest.raises(PolicyError, match=f"policies/{name} is never used, .* 'east', .* called 'east.yaml'"):
        connections.policy_of("east")


@pytest.mark.parametrize("name", ["policy.yml", "Policy.yaml", "POLICY.YML"])
def test_a_shared_file_that_is_nearly_called_so_is_an_error(
    site: Worksite, home: Path, connect: Connect, name: str
) -> None:
    """The same holds for the file that all clusters share, also where no file at all would be allowed."""
    connect(site.simulator, no_policy_file=True)
    (home / name).write_text(STRICT)
    with pytest.raises(PolicyError, match=rf"{name} is never used, .* called 'policy\.yaml'"):
        connections.policy_of("east")


@pytest.mark.parametrize("what", ["a folder", "a link that leads to no file", "no file that can be read"])
@pytest.mark.parametrize("place", ["policies/east.yaml", "policy.yaml"])
def test_what_lies_in_the_place_of_a_file_and_is_none_is_an_error(
    site: Worksite, home: Path, connect: Connect, place: str, what: str
) -> None:
    """A folder, a link to nothing or a pipe in the place of a policy is an error, and is not passed over."""
    connect(site.simulator, no_policy_file=True)
    (home / "policies").mkdir()
    if place != "policy.yaml":
        (home / "policy.yaml").write_text(LOOSE)
    file = home / place
    make = {"a folder": file.mkdir, "no file that can be read": lambda: os.mkfifo(file)}
    make.get(what, lambda: file.symlink_to("/nowhere/at/all"))()
    with pytest.raises(PolicyError, match=f"{place} is {what}, and no policy of cluster 'east'"):
        connections.policy_of("east")


@pytest.mark.parametrize("name", ["policies", "Policies"])
def test_a_folder_of_policies_that_is_none_is_an_error(home: Path, name: str) -> None:
    """A file or a link to nothing in the place of the folder is an error, and so is a folder nearly called so."""
    (home / "policy.yaml").write_text(LOOSE)
    folder = home / name
    for make in (lambda: folder.write_text(STRICT), lambda: folder.symlink_to("/nowhere")):
        make()
        with pytest.raises(PolicyError, match=f"{name} is (no folder|a link to nothing|never read)"):
            connections.policy_of("east")
        assert unused_files()
        folder.unlink()


def test_a_file_that_goes_while_it_is_looked_for_is_an_error(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that is taken away between being found and being read is an error, and not the defaults."""
    monkeypatch.setattr(connections, "policy_file", lambda _: policies / "gone.yaml")
    with pytest.raises(PolicyError, match=r"gone\.yaml: no such file"):
        connections.policy_of("east")


def test_what_may_be_meant_for_another_cluster_is_said(policies: Path) -> None:
    """What is used for no cluster is no error of this one, and is told by name; hidden files are nobody's."""
    for name in ("east.yaml", "west.yml", ".east.yaml.swp", "north.yaml", "NORTH.yaml"):
        (policies / name).write_text(STRICT)
    (policies / "south.yaml").symlink_to("/nowhere")
    (policies / "old").mkdir()
    assert connections.policy_of("east").apply.protected_namespaces == ("shop/orders",)
    told = [each.replace(f"{policies}/", "") for each in unused_files()]
    assert told == [
        "old is a folder, and never used as a policy",
        "south.yaml is a link that leads to no file, and never used as a policy",
        "west.yml is never used: a policy is called CLUSTER.yaml, letter by letter",
        "NORTH.yaml and north.yaml differ only in upper and lower case: none is used",
    ]


def test_links_as_kubernetes_makes_them_are_files(policies: Path) -> None:
    """A policy that is a link through a hidden folder, as of a mounted ConfigMap, is used, and nothing else is said."""
    (policies / "..2026").mkdir()
    (policies / "..2026" / "east.yaml").write_text(STRICT)
    (policies / "..data").symlink_to("..2026")
    (policies / "east.yaml").symlink_to("..data/east.yaml")
    assert connections.policy_of("east").apply.protected_namespaces == ("shop/orders",)
    assert unused_files() == ()
