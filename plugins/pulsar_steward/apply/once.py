"""Decorator of questions about the live cluster that are answered once per look, however many guards ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable


class KeepsAnswers(Protocol):
    """An object that keeps answers.

    Attributes:
        known: Answers by question and arguments.
    """

    known: dict[Any, Any]


Facts = TypeVar("Facts", bound=KeepsAnswers)
Params = ParamSpec("Params")
Answer = TypeVar("Answer")


def once(read: Callable[Concatenate[Facts, Params], Answer]) -> Callable[Concatenate[Facts, Params], Answer]:
    """The same question, which is read the first time only."""

    def answered(facts: Facts, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        question = (read.__name__, args, *kwargs.items())
        if question not in facts.known:
            facts.known[question] = read(facts, *args, **kwargs)
        return cast("Answer", facts.known[question])

    return answered
