"""Options that several commands take: the fields of a struct, which is one parameter of each command."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, get_args, get_type_hints

import msgspec
import typer
from typer.models import OptionInfo


def option(metavar: str, words: str, *names: str) -> Any:
    """An option with a value, and its help; without names, such as ``--html``, it has that of its parameter."""
    return typer.Option(*names, metavar=metavar, help=words)


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it: each option of a struct among its parameters is a parameter of its own.

    An option is a field that is annotated with one, with its default. A field whose type is such a struct has that
    one's options; any other field keeps its default.
    """
    signature = inspect.signature(command, eval_str=True)
    flat = [each for parameter in signature.parameters.values() for each in _flat(parameter)]

    @wraps(command)
    def called(*arguments: Any, **options: Any) -> None:
        parameters = signature.parameters.values()
        groups = {each.name: _made(each.annotation, options) for each in parameters if _is_group(each.annotation)}
        command(*arguments, **options, **groups)

    called.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]  # read by inspect
    called.__annotations__ = {each.name: each.annotation for each in flat}
    return called


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _flat(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not _is_group(parameter.annotation):
        yield parameter
        return
    for name, (annotation, default) in _fields(parameter.annotation).items():
        field = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        yield from _flat(field)


def _made(group: Any, options: dict[str, Any]) -> Any:
    """A struct of the given options that are its fields; they are taken out of the given ones."""
    fields = _fields(group)
    values: Mapping[str, Any] = {
        name: _made(annotation, options) if _is_group(annotation) else options.pop(name)
        for name, (annotation, _) in fields.items()
    }
    return group(**values)


def _fields(group: Any) -> dict[str, tuple[Any, Any]]:
    """Annotations and defaults of those fields of a struct that are options, or structs of options."""
    hints = get_type_hints(group, include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(group)}
    options = {name for name, hint in hints.items() if any(isinstance(each, OptionInfo) for each in get_args(hint))}
    return {
        name: (hints[name], default) for name, default in defaults.items() if name in options or _is_group(hints[name])
    }
