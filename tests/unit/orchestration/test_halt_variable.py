"""The halt variable: it halts, and what it was seen to say is kept before anybody is told."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from pulsar_steward.notify.variable import VariableHalt
from pulsar_steward.orchestration import halt_variable
from pulsar_steward.orchestration.halt_variable import HALT, SEEN, halted_by_variable, halts_seen
from tests.builders import CLUSTER, NOW

if TYPE_CHECKING:
    from collections.abc import Mapping


class Variables:
    """Airflow's variables, as far as they are used.

    Attributes:
        unwritable: True: none can be set.
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.unwritable = False

    def get(self, name: str, default: Any) -> Any:
        """A variable's value."""
        return self.values.get(name, default)

    def set(self, name: str, value: str, description: str) -> None:
        """Sets a variable."""
        if self.unwritable:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.GENERIC_ERROR, detail={"why": description}))
        self.values[name] = value


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    """No variable is set."""
    made = Variables()
    monkeypatch.setattr(halt_variable, "Variable", made)
    return made


def known() -> frozenset[str]:
    """Returns the clusters that the ledger knows."""
    return frozenset({CLUSTER, "west"})


def seen(minutes: int) -> Mapping[str, tuple[bool, int]]:
    """State of two clusters, so many minutes from now: whether it halts, and since which minute."""
    found = halts_seen([CLUSTER, "north"], NOW + timedelta(minutes=minutes), known)
    return {name: (each.halted, (each.at - NOW) // timedelta(minutes=1)) for name, each in found.items()}


@pytest.mark.parametrize(("value", "halts"), [("", False), ("west", False), ("west, east ", True), ("*", True)])
def test_it_halts_the_clusters_that_it_names(variables: Variables, value: str, *, halts: bool) -> None:
    """The halt variable halts the clusters that it names, and every cluster when it is `*`."""
    variables.values[HALT] = value
    assert (halted_by_variable(CLUSTER, known) is not None) == halts


def test_each_change_has_the_time_at_which_it_was_seen_first(variables: Variables) -> None:
    """Each change of the halt variable keeps the time at which it was first seen. Before a first halt none is kept."""
    assert (seen(0), SEEN in variables.values) == ({}, False)
    variables.values[HALT] = "east"
    assert [seen(1), seen(2)] == [{CLUSTER: (True, 1)}] * 2
    del variables.values[HALT]
    assert [seen(3), seen(4)] == [{CLUSTER: (False, 3)}] * 2
    variables.values[HALT] = "*"
    assert seen(5) == {CLUSTER: (True, 5), "north": (True, 5)}


def test_nobody_is_told_of_what_cannot_be_kept(variables: Variables) -> None:
    """A halt by the variable is reported only by the first look that can also store it."""
    variables.values[HALT] = "east"
    variables.unwritable = True
    assert seen(1) == {}
    variables.unwritable = False
    assert seen(2) == {CLUSTER: (True, 2)}


def test_what_somebody_wrote_into_its_memory_is_written_anew(variables: Variables) -> None:
    """A stored state of the variable that cannot be read is written anew, and the halt counts from then on."""
    variables.values |= {HALT: "east", SEEN: "[not json"}
    assert seen(1) == {CLUSTER: (True, 1)}
    kept = halts_seen([CLUSTER], NOW, known)[CLUSTER]
    assert kept == VariableHalt(
        halted=True, at=NOW + timedelta(minutes=1), value="east", way_out="take east out of it to go on"
    )
