"""The command line's arguments before any command reads them: refuses empty ones, and bytes that are no text."""

from collections.abc import Iterator, Sequence

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.outside_text import shown

_REASON = "--reason"
"""Free text for people. A halt is kept whatever bytes its reason holds."""


def checked_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments, bytes in a reason that are no UTF-8 escaped.

    Raises:
        ConfigurationError: If another one has such bytes, or is empty: as a path it would name the current folder.
    """
    return list(_checked(arguments))


def _checked(arguments: Sequence[str]) -> Iterator[str]:
    before = ""
    for argument in arguments:
        is_reason = before == _REASON or argument.startswith(f"{_REASON}=")
        if is_reason:
            yield argument if _is_text(argument) else shown(argument)
        else:
            _refuse_empty(argument, before)
            if not _is_text(argument):
                raise ConfigurationError(f"the argument {shown(argument)} is no text in UTF-8: nothing has such a name")
            yield argument
        before = argument


def _refuse_empty(argument: str, before: str) -> None:
    option = argument[:-1] if argument.startswith("--") and argument.endswith("=") else before
    if argument == "" and not before.startswith("--"):
        raise ConfigurationError("an argument is empty: name something, or leave it out")
    if argument in {"", f"{option}="}:
        raise ConfigurationError(f"{option} is empty: name something, or leave it out")


def _is_text(argument: str) -> bool:
    """False for bytes that were no UTF-8: Python has them as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in argument)
