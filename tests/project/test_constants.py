"""Numbers with a name stand once, beside a comment that says why they are what they are."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "kitchenette"


class Constant(NamedTuple):
    """A name in capitals, or a field of the search's settings, that is given a number."""

    path: Path
    line: int
    end: int
    names: tuple[str, ...]
    value: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(SOURCE)}:{self.line} {', '.join(self.names)} = {self.value}"


def is_number(value: ast.expr) -> bool:
    """Whether an expression is a number, or a tuple of numbers, that is written here."""
    match value:
        case ast.Constant(value=number):
            return type(number) in (int, float)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) or (is_number(right) and not isinstance(left, ast.Constant))
        case ast.Tuple(elts=elements):
            return any(is_number(e) and not isinstance(e, ast.Tuple) for e in elements)
    return False


def assigned(node: ast.stmt) -> tuple[tuple[str, ...], ast.expr | None]:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            return (name,), value
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return (name,), value
        case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value):
            return tuple(e.id for e in elements if isinstance(e, ast.Name)), value
    return (), None


def constants(path: Path) -> Iterator[Constant]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        settings = isinstance(node, ast.ClassDef) and node.name == "SearchSettings"
        for statement in node.body if isinstance(node, ast.ClassDef) and settings else [node]:
            names, value = assigned(statement)
            if (
                names
                and value is not None
                and is_number(value)
                and (settings or all(name.isupper() and len(name) > 1 for name in names))
            ):
                yield Constant(
                    path, statement.lineno, statement.end_lineno or 0, names, ast.unparse(value)
                )


CONSTANTS = [constant for path in sorted(SOURCE.rglob("*.py")) for constant in constants(path)]


def test_numbers_have_a_reason():
    missing = []
    for constant in CONSTANTS:
        lines = constant.path.read_text(encoding="utf-8").splitlines()
        explained = any("  # " in line for line in lines[constant.line - 1 : constant.end])
        # A comment above explains the lines that follow it, down to an empty one.
        for line in reversed(lines[: constant.line - 1]):
            if explained or not line.strip() or line.startswith(("class ", "def ")):
                break
            explained = line.strip().startswith("# ")
        if not explained:
            missing.append(str(constant))
    assert not missing, "\n".join(missing)


def test_numbers_stand_once():
    places = defaultdict(list)
    for constant in CONSTANTS:
        if len(constant.names) == 1:
            places[constant.names[0], constant.value].append(str(constant))
    twice = [place for same in places.values() if len(same) > 1 for place in same]
    assert not twice, "\n".join(twice)
