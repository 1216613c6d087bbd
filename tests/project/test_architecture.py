"""Imports between packages go one way, and what is private to a package stays there."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "kitchenette"

# Package: the packages that it may import. A package is a folder, or a module beside the folders.
MAY_IMPORT: dict[str, set[str]] = {
    "baselines": set(),
    "comparison": set(),
    "parameters": set(),
    "quantities": set(),
    "resources": {"quantities"},
    "files": {"comparison", "parameters"},
    "kernels": {"comparison", "files", "parameters"},
    "sketching": {"comparison", "files", "parameters"},
}
MAY_IMPORT["data"] = {"kernels", "sketching"} | MAY_IMPORT["kernels"]
MAY_IMPORT["columns"] = {"data"} | MAY_IMPORT["data"]
MAY_IMPORT["maps"] = {"columns"} | MAY_IMPORT["columns"]
MAY_IMPORT["bounds"] = {"maps"} | MAY_IMPORT["maps"]
MAY_IMPORT["metrics"] = {"maps"} | MAY_IMPORT["maps"]
MAY_IMPORT["learning"] = {"maps", "resources"} | MAY_IMPORT["maps"]
MAY_IMPORT["selection"] = {"learning"} | MAY_IMPORT["learning"]
MAY_IMPORT["training"] = {"selection"} | MAY_IMPORT["selection"]
MAY_IMPORT["estimators"] = {"training"} | MAY_IMPORT["training"]
MAY_IMPORT["report"] = {"estimators", "metrics"} | MAY_IMPORT["estimators"]
MAY_IMPORT["report"] |= {"baselines", "quantities", "resources"}
MAY_IMPORT["backends"] = {"estimators", "quantities"} | MAY_IMPORT["estimators"]
MAY_IMPORT["dask"] = MAY_IMPORT["spark"] = {"backends"} | MAY_IMPORT["backends"]
MAY_IMPORT["_config"] = set()
MAY_IMPORT["jobs"] = {"backends", "baselines"} | MAY_IMPORT["backends"]
MAY_IMPORT["cli"] = {"_config", "jobs", "report"} | MAY_IMPORT["jobs"] | MAY_IMPORT["report"]

ENTRANCES = {"__init__", "__main__"}  # may import everything, and nothing imports them
NATIVE = "_core"
MAY_CALL_NATIVE = {"_config", "data", "learning", "resources", "sketching"}


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


MODULES = sorted(path for path in SOURCE.rglob("*.py") if package_of(path) not in ENTRANCES)


@cache
def trees() -> dict[Path, ast.Module]:
    """The parsed modules; parsed when a test needs them, as every worker of pytest imports this."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def imported(tree: ast.AST, path: Path) -> Iterator[tuple[str, str, int]]:
    """The package, the name and the line of everything that is imported from the package."""
    package = ("kitchenette", *path.relative_to(SOURCE).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*start, *([node.module] if node.module else [])])
            names = [(module, alias.name) for alias in node.names]
        else:
            continue
        for module, name in names:
            first, *inside = module.split(".")
            if first == "kitchenette":
                yield inside[0] if inside else name, name, node.lineno


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in {"_", NATIVE}


def private_definitions(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


@cache
def private_of_package() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees().items():
        found[package_of(module)].update(filter(private, private_definitions(tree)))
    return found


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(SOURCE)}:{line}"


def test_every_module_stands_in_a_package_with_a_place_in_the_order():
    assert {package_of(path) for path in MODULES} <= set(MAY_IMPORT)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package):
    allowed = {package, NATIVE} | MAY_IMPORT[package]
    wrong = [
        f"{place(path, line)} imports {target or 'kitchenette'}"
        for path, tree in trees().items()
        if package_of(path) == package
        for target, _, line in imported(tree, path)
        if target not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_no_private_name_is_imported_from_another_package():
    wrong = [
        f"{place(path, line)} imports {name} from {target}"
        for path, tree in trees().items()
        for target, name, line in imported(tree, path)
        if private(name) and target != package_of(path)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_private_attribute_of_one_package_is_used_in_another():
    wrong = []
    for path, tree in trees().items():
        package = package_of(path)
        elsewhere = {
            name: other
            for other, names in private_of_package().items()
            for name in names - private_of_package()[package]
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in elsewhere:
                owner = elsewhere[node.attr]
                wrong.append(f"{place(path, node.lineno)} uses .{node.attr}, private to {owner}")
    assert not wrong, "\n".join(wrong)


def native_functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Functions of the native module that are used; its classes only describe operators."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module == NATIVE:
                used = [name]
            case ast.ImportFrom(module=module, names=names) if module == f"kitchenette.{NATIVE}":
                used = [alias.name for alias in names]
            case _:
                continue
        yield from ((name, node.lineno) for name in used if name[0].islower())


def test_native_functions_are_called_where_numbers_are_computed_and_nowhere_else():
    wrong = [
        f"{place(path, line)} uses {NATIVE}.{name}"
        for path, tree in trees().items()
        if package_of(path) not in MAY_CALL_NATIVE
        for name, line in native_functions(tree)
    ]
    assert not wrong, "\n".join(wrong)


def test_learning_knows_maps_by_the_protocol_alone():
    particular = {"FrozenEstimator", "CRAFTMap", "TEFM", "base_", "up_"}
    wrong = [
        f"{place(path, node.lineno)} knows {name}"
        for path, tree in trees().items()
        if package_of(path) == "learning"
        for node in ast.walk(tree)
        for name in names_in(node) & particular
    ]
    assert not wrong, "\n".join(wrong)


def names_in(node: ast.AST) -> set[str]:
    match node:
        case ast.ImportFrom(names=names):
            return {alias.name for alias in names}
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return {name}
    return set()


def test_the_checks_see_what_they_should():
    path = SOURCE / "maps" / "imaginary.py"
    tree = ast.parse(
        "from kitchenette.learning.solution import _x\nfrom ..cli import app\n"
        "import kitchenette.cli.demo\nfrom kitchenette import metrics\nimport numpy\n"
        "self._made = _core.make(_core.Nonlinearity())\n"
    )
    found = [(package, name) for package, name, _ in imported(tree, path)]
    assert found == [("learning", "_x"), ("cli", "app"), ("cli", ""), ("metrics", "metrics")]
    assert "_made" in set(private_definitions(tree))
    assert list(native_functions(tree)) == [("make", 6)]
    assert {name for node in ast.walk(tree) for name in names_in(node)} >= {"_x", "make", "self"}


def test_learning_training_and_estimators_have_few_files():
    counts = {
        package: len(list(SOURCE.glob(f"{package}/*.py")))
        for package in ("learning", "training", "estimators")
    }
    assert sum(counts.values()) <= 30, counts


def test_one_class_of_ours_stands_between_an_estimator_and_scikit_learn():
    from kitchenette import KernelClassifier, KernelPCA, KernelRegressor

    for estimator in (KernelClassifier, KernelPCA, KernelRegressor):
        ours = [cls for cls in estimator.__mro__[1:] if cls.__module__.startswith("kitchenette.")]
        assert [cls.__name__ for cls in ours] == ["KernelEstimator"]


def test_nobody_asks_whether_rows_are_a_source_behind_the_border():
    wrong = [
        place(path, node.lineno)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and any(name.endswith("Source") for name in names_of(node.args[1]))
    ]
    assert {where.partition(":")[0] for where in wrong} == {"data/border.py", "data/opening.py"}


def names_of(classes: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(classes) if isinstance(node, ast.Name)}


def test_attributes_are_assigned_by_name():
    wrong = [path.name for path in MODULES if "__dict__.update(" in path.read_text("utf-8")]
    assert not wrong


def test_a_class_name_has_one_meaning():
    places = defaultdict(set)
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].add(str(path.relative_to(SOURCE)))
    # Stages of Spark's pipelines are named as the estimators that they wrap.
    wrapped = {"KernelClassifier", "KernelRegressor"}
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert twice.keys() <= wrapped, twice
