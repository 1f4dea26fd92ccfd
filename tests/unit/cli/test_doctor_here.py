"""``steward doctor``: the home folder of Steward, and the policies in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.test_doctor import home, lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]

__all__ = ["home"]


def test_a_home_that_is_open_to_others(steward: Steward, home: Path) -> None:
    """A home that is open to other users is a problem; the remedy is a command, and the mode is left as it is."""
    home.chmod(0o755)
    ended = steward("doctor", "--json")
    line = lines(ended)["STEWARD_HOME"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert line["remedy"] == f"chmod 700 {home}"
    assert home.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("below", "words"), [("", "is no folder"), ("steward", "cannot be made in")])
def test_a_home_that_cannot_be_one(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str, words: str
) -> None:
    """A home that is a file, or would be below one, is a problem, and the remedy is another one."""
    (tmp_path / "a file").touch()
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path / "a file" / below))
    ended = steward("doctor", "--json")
    line = lines(ended)["STEWARD_HOME"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert words in line["words"]
    assert line["remedy"].startswith("name another one")


def test_a_home_that_is_not_there_is_not_made(steward: Steward, home: Path) -> None:
    """A missing home is no problem, and the doctor does not make it."""
    home.rmdir()
    ended = steward("doctor", "--json")
    assert ended.code == 0
    assert "not there yet" in lines(ended)["STEWARD_HOME"]["words"]
    assert not home.exists()


def test_policies_are_read(steward: Steward, home: Path, tmp_path: Path) -> None:
    """All policies that runs would read are checked, or only the one that is named."""
    (home / "policies").mkdir()
    (home / "policies" / "east.yaml").write_text("tc_skew: {warning_spread_coordinators: 3}\n", encoding="utf-8")
    (home / "policy.yaml").write_text("tc_skew: {no_such_key: 3}\n", encoding="utf-8")
    told = lines(steward("doctor", "--json"))
    assert told["policy east.yaml"]["state"] == "ok"
    assert told["policy policy.yaml"]["state"] == "problem"
    assert "no_such_key" in told["policy policy.yaml"]["words"]
    assert "steward policy check" in told["policy policy.yaml"]["remedy"]
    named = lines(steward("doctor", "--policy", tmp_path / "none.yaml", "--json"))
    assert "no such file" in named["policy none.yaml"]["words"]


def test_policies_that_are_never_used_are_a_problem(steward: Steward, home: Path) -> None:
    """A file whose name is not exactly that of a cluster's policy is a problem, with its remedy."""
    (home / "policies").mkdir()
    (home / "policies" / "east.yml").write_text("tc_skew: {warning_spread_coordinators: 3}\n", encoding="utf-8")
    ended = steward("doctor", "--json")
    line = lines(ended)["policies"]
    assert (ended.code, line["state"]) == (1, "problem")
    assert "policies/east.yml is never used" in line["words"]
