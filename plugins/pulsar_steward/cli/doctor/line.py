"""A result line of ``steward doctor``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.cli.errors import remedy_of
from pulsar_steward.errors import NotAllowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.errors import StewardError


class LineState(StrEnum):
    """State of a requirement; `UNKNOWN`: it could not be checked."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check.

    Attributes:
        subject: What was checked.
        state: The state.
        words: The state in a sentence.
        remedy: What to do; empty where nothing has to be done.
    """

    subject: str
    state: LineState
    words: str
    remedy: str = ""


def fine(subject: str, words: str) -> Line:
    """Result without a problem."""
    return Line(subject=subject, state=LineState.OK, words=words)


def problem(subject: str, words: str, remedy: str) -> Line:
    """Result with a problem."""
    return Line(subject=subject, state=LineState.PROBLEM, words=words, remedy=remedy)


def unknown(subject: str, words: str, remedy: str) -> Line:
    """Result of something that could not be checked."""
    return Line(subject=subject, state=LineState.UNKNOWN, words=words, remedy=remedy)


def of_error(subject: str, error: StewardError, state: LineState = LineState.UNKNOWN) -> Line:
    """Result for an error of Steward's own, with its remedy, unless the error's message has one."""
    remedy = error.remedy if isinstance(error, NotAllowed) else ""
    words = str(error).removesuffix(f"; {remedy}")
    return Line(subject=subject, state=state, words=words, remedy=remedy or remedy_of(type(error)))


def exit_code(lines: Iterable[Line]) -> int:
    """0: all is fine, 1: there are problems, 2: something could not be looked at."""
    states = {line.state for line in lines}
    return 2 if LineState.UNKNOWN in states else int(LineState.PROBLEM in states)
