"""The examples in docstrings and in the README run as printed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import kitchenette

README = Path(__file__).parents[2] / "README.md"
MODULES = ["kitchenette"] + [
    module.name
    for module in pkgutil.walk_packages(kitchenette.__path__, "kitchenette.")
    if not module.name.endswith(("._core", ".__main__"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_in_the_readme():
    result = doctest.testfile(str(README), module_relative=False)
    assert result.failed == 0
    assert result.attempted > 0


WITHOUT_EXAMPLE = {
    # Base classes; the docstring of kitchenette.kernels.spectra shows how to use them.
    "DotProductKernel",
    "Kernel",
    "RadialKernel",
    "RadialLengths",
    "RadialSpectrum",
    "ShiftInvariantKernel",
    "Spectrum",
}


def test_every_public_name_has_an_example():
    finder = doctest.DocTestFinder(recurse=False)
    for namespace in (kitchenette, kitchenette.kernels):
        for name in set(namespace.__all__) - WITHOUT_EXAMPLE:
            thing = getattr(namespace, name)
            if callable(thing):
                assert any(test.examples for test in finder.find(thing)), name
    assert any(test.examples for test in finder.find(kitchenette.metrics.kernel_error))
