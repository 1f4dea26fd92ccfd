"""JSON decoded, and values converted, to types: on any thread, also where several use a type for the first time.

msgspec learns a type at its first use and runs Python code meanwhile. A thread that uses the type in that moment reads
a null pointer, and the process ends with a segmentation fault (docs/architecture.md, Threads). So all types are learned
here, one at a time. Elsewhere ruff forbids the functions of msgspec that learn one.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from typing_extensions import Buffer

T = TypeVar("T")

Decoder = msgspec.json.Decoder

_LEARNED: dict[tuple[Any, bool], Decoder[Any]] = {}
_LEARNING = RLock()


@overload
def decoder(kind: type[T], *, strict: bool = True) -> Decoder[T]: ...
@overload
def decoder(kind: Any, *, strict: bool = True) -> Decoder[Any]: ...
def decoder(kind: Any, *, strict: bool = True) -> Decoder[Any]:
    """Decoder of a type, which learned it and all types in it; threads may share it.

    Args:
        kind: The type.
        strict: False: numbers and booleans may be written as text.
    """
    learned = _LEARNED.get((kind, strict))
    if learned is None:
        with _LEARNING:
            learned = _LEARNED[kind, strict] = Decoder(kind, strict=strict)
    return learned


@overload
def decode(document: Buffer | str, kind: type[T], *, strict: bool = True) -> T: ...
@overload
def decode(document: Buffer | str, kind: Any = Any, *, strict: bool = True) -> Any: ...
def decode(document: Buffer | str, kind: Any = Any, *, strict: bool = True) -> Any:
    """Decodes JSON as a type, or as whatever it is.

    Raises:
        msgspec.DecodeError: If it is not JSON; `msgspec.ValidationError`, a subclass, if it does not match the type.
    """
    return decoder(kind, strict=strict).decode(document)


@overload
def convert(value: Any, kind: type[T]) -> T: ...
@overload
def convert(value: Any, kind: Any) -> Any: ...
def convert(value: Any, kind: Any) -> Any:
    """Converts a value of dicts and lists to a type.

    Raises:
        msgspec.ValidationError: If it does not match the type.
    """
    # Not `kind`: of a generic type only this object is learned, not one that equals it.
    return msgspec.convert(value, decoder(kind).type)


def convert_rows(rows: list[dict[str, Any]], kind: type[T]) -> list[T]:
    """Converts rows to a type.

    Raises:
        msgspec.ValidationError: If one does not match the type.
    """
    return convert(rows, list[kind])  # type: ignore[valid-type]  # a type only known here
