"""The examples in docstrings and in the README run as printed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import kitchenette
import kitchenette.dask
import kitchenette.jobs
import kitchenette.report

README = Path(__file__).parents[2] / "README.md"
DATA = README.parent / "docs" / "data.md"
CLUSTERS = README.parent / "docs" / "clusters.md"
COMMAND = README.parent / "docs" / "command.md"
MODULES = ["kitchenette"] + [
    module.name
    for module in pkgutil.walk_packages(kitchenette.__path__, "kitchenette.")
    if not module.name.endswith(("._core", ".__main__"))
    and "spark" not in module.name  # tests/backends/test_spark.py has a session for them
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, DATA, CLUSTERS, COMMAND], ids=lambda page: page.stem)
def test_examples_on_pages(page):
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 0


NAMESPACES = (
    kitchenette,
    kitchenette.bounds,
    kitchenette.dask,
    kitchenette.data,
    kitchenette.files,
    kitchenette.jobs,
    kitchenette.kernels,
    kitchenette.learning,
    kitchenette.maps,
    kitchenette.metrics,
    kitchenette.report,
    kitchenette.sketching,
)


def test_every_public_name_has_an_example():
    finder = doctest.DocTestFinder(recurse=False)
    for namespace in NAMESPACES:
        for name in namespace.__all__:
            thing = getattr(namespace, name)
            if callable(thing):
                assert any(test.examples for test in finder.find(thing)), name


def test_every_public_name_is_in_the_documentation():
    folder = Path(__file__).parents[2]
    pages = [README, folder / "CHANGELOG.md", *(folder / "docs").glob("*.md")]
    words = set(re.findall(r"\w+", " ".join(page.read_text() for page in pages)))
    for namespace in NAMESPACES:
        for name in namespace.__all__:
            assert name == "__version__" or name in words, name
