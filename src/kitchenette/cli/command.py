"""What all commands share: groups of options, output as text or JSON, errors as one sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from kitchenette.cli.outcome import explained
from kitchenette.cli.terminal import Terminal


@dataclass(frozen=True)
class OutputOptions:
    """How results and errors are printed; options of all commands."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A function for typer, which prints errors as one sentence.

    Parameters that are dataclasses become an option for each of their fields, which are annotated
    as options and have defaults. The parameter `terminal` becomes `OutputOptions`.

    Examples
    --------
    >>> import inspect
    >>> from dataclasses import dataclass
    >>> from kitchenette.cli.command import command
    >>> from kitchenette.cli.terminal import Terminal
    >>> @dataclass
    ... class Place:
    ...     city: str = "Oslo"
    >>> @command
    ... def visit(name: str, place: Place, terminal: Terminal):
    ...     print(name, "visits", place.city)
    >>> list(inspect.signature(visit).parameters)
    ['name', 'city', 'as_json', 'debug']
    >>> visit(name="Ada", city="Rome", as_json=False, debug=False)
    Ada visits Rome
    """
    hints: dict[str, Any] = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    groups["terminal"] = OutputOptions
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in groups:
            parameters += _options_of(groups[parameter.name])
        else:
            # All have keywords, so that options without defaults may follow those of a group.
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[parameter.name]))

    @wraps(function)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        output: OutputOptions = values.pop("terminal")
        with explained(output.debug):
            function(**values, terminal=Terminal(output.as_json))

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {one.name: one.annotation for one in parameters}
    return expanded


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints, defaults = get_type_hints(group, include_extras=True), group()
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(defaults, field.name),
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
