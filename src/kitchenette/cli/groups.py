"""Groups of options that several commands share, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are dataclasses became an option for each of their fields.

    Parameters
    ----------
    command : callable
        A function for typer. The fields of its dataclasses are annotated as options, and all of
        them have defaults.

    Returns
    -------
    command : callable
        The same for typer, which sees the fields instead of the dataclasses.

    Examples
    --------
    >>> import inspect
    >>> from dataclasses import dataclass
    >>> from kitchenette.cli.groups import with_groups
    >>> @dataclass
    ... class Place:
    ...     city: str = "Oslo"
    >>> @with_groups
    ... def visit(name: str, place: Place):
    ...     print(name, "visits", place.city)
    >>> list(inspect.signature(visit).parameters)
    ['name', 'city']
    >>> visit(name="Ada", city="Rome")
    Ada visits Rome
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = groups.get(parameter.name)
        if group is None:
            annotation = hints.get(parameter.name, parameter.annotation)
            parameters.append(parameter.replace(annotation=annotation))
        else:
            parameters += _options_of(group)

    @wraps(command)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    # All have keywords, so that options without defaults may follow those of a group.
    ordered = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    expanded.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    expanded.__annotations__ = {one.name: one.annotation for one in ordered}
    return expanded


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints, keyword = get_type_hints(group, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    defaults = group()
    return [
        inspect.Parameter(
            field.name,
            keyword,
            default=getattr(defaults, field.name),
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
