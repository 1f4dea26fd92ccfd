"""Which clusters a run observes, and that no two runs observe one cluster at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.orchestration import home, observing
from pulsar_steward.orchestration.remediating import wanted_by
from tests.cases import row_by_row

if TYPE_CHECKING:
    from pathlib import Path


@row_by_row(
    "text, names",
    ("east", ["east"]),
    (" east, west ,east,", ["east", "west"]),
)
def test_clusters_are_divided_by_commas(text: str, names: list[str]) -> None:
    assert [each["cluster"] for each in observing.prepare(text)] == names


@row_by_row("text, words", (" , ", "no cluster is named"), ("east,../west", "cluster name '../west'"))
def test_a_name_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        observing.prepare(text)


def test_who_changes_says_which_of_several_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without several clusters the only one is the default."""
    monkeypatch.setenv("STEWARD_CLUSTER", "east")
    assert home.cluster_param().value == "east"
    monkeypatch.setenv("STEWARD_CLUSTER", "east,west")
    assert home.cluster_param().value is None
    with pytest.raises(ConfigurationError, match="`cluster`: one of east, west"):
        wanted_by({"cluster": None}, [])


@pytest.mark.parametrize("text", ["0", "all", "-1", "4.5"])
def test_a_number_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STEWARD_CLUSTERS_AT_ONCE", text)
    with pytest.raises(ConfigurationError, match="STEWARD_CLUSTERS_AT_ONCE"):
        home.clusters_at_once()


def test_a_cluster_is_observed_by_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second one is told so; other clusters are not concerned, and it may once the first is over."""
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    with (
        home.observed_alone("east") as first,
        home.observed_alone("east") as second,
        home.observed_alone("west") as other,
    ):
        assert (first, second, other) == (True, False, True)
    with pytest.raises(ConfigurationError, match="cluster name"), home.observed_alone("../ledger.db"):
        pytest.fail("a file of another name was opened")
    with home.observed_alone("east") as later:
        assert later
