"""Decorator for facts of the live cluster that are read once per look, even if several guards need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable


class KeepsAnswers(Protocol):
    """An object that keeps its methods' results.

    Attributes:
        known: Results by method name and arguments.
    """

    known: dict[Any, Any]


Facts = TypeVar("Facts", bound=KeepsAnswers)
Params = ParamSpec("Params")
Answer = TypeVar("Answer")


def once(read: Callable[Concatenate[Facts, Params], Answer]) -> Callable[Concatenate[Facts, Params], Answer]:
    """The method, whose result is read once and then kept."""

    def answered(facts: Facts, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        question = (read.__name__, args, *kwargs.items())
        if question not in facts.known:
            facts.known[question] = read(facts, *args, **kwargs)
        return cast("Answer", facts.known[question])

    return answered
