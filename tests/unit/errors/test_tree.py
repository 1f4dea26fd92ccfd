"""The tree of errors: what is what, what an error says, and what it never says."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

from pulsar_steward import errors
from tests.cases import row_by_row

DRAWN = re.compile(r"^ {4}([ │├└─]*)([A-Z][A-Za-z]+)", re.MULTILINE)


def drawn_parents() -> dict[str, str]:
    """Each error's parent as the module's docstring draws it."""
    above: list[tuple[int, str]] = [(-1, "Exception")]
    parents: dict[str, str] = {}
    for branch, name in DRAWN.findall(errors.__doc__ or ""):
        while above[-1][0] >= len(branch):
            above.pop()
        parents[name] = above[-1][1]
        above.append((len(branch), name))
    return parents


def test_the_tree_is_as_it_is_drawn() -> None:
    """Every error is in the module's drawing, below the parent that it really has, and the drawing holds no other."""
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, Exception)]
    assert {each.__name__: each.__base__.__name__ for each in classes if each.__base__} == drawn_parents()


@row_by_row(
    "status, expected",
    (300, errors.StatusError),
    (400, errors.StatusError),
    (401, errors.NotAllowed),
    (403, errors.NotAllowed),
    (404, errors.NotFound),
    (406, errors.NotAcceptable),
    (409, errors.Conflict),
    (412, errors.Precondition),
    (429, errors.TooManyRequests),
    (499, errors.StatusError),
    (500, errors.ServerError),
    (599, errors.ServerError),
)
def test_a_status_has_a_class(status: int, expected: type[errors.StatusError]) -> None:
    """Statuses that callers tell apart have a class of their own."""
    assert errors.error_for_status(status) is expected


ADMIN_ERRORS: list[errors.AdminError] = [
    errors.Unreachable("GET", "/p", "b:1", "refused"),
    errors.NotFound("GET", "/p", "b:1", "Topic not found", 404),
    errors.NotAllowed("GET", "/p", "b:1", "no", 401, "no credentials were sent"),
]


@pytest.mark.parametrize("error", ADMIN_ERRORS, ids=lambda each: type(each).__name__)
def test_an_error_is_the_same_after_a_journey(error: errors.AdminError) -> None:
    """A copied or pickled error keeps its class, words and parts."""
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - our own bytes
        assert (type(again), str(again), repr(again), vars(again)) == (
            type(error),
            str(error),
            repr(error),
            vars(error),
        )


@pytest.mark.parametrize(
    ("length", "kept"), [(0, 0), (1, 1), (errors.REASON_LIMIT, errors.REASON_LIMIT), (9_999, errors.REASON_LIMIT)]
)
def test_a_reason_is_cut_at_the_limit(length: int, kept: int) -> None:
    """An error keeps at most `REASON_LIMIT` characters of a reason, in its words and in its parts."""
    error = errors.StatusError("GET", "/p", "b:1", "x" * length, 400)
    assert len(error.reason) == kept
    assert "x" * (errors.REASON_LIMIT + 1) not in str(error) + repr(error)
    assert str(error) == f"GET /p at b:1: 400 {error.reason}"
