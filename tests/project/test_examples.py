"""The examples run and show what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_kernel_on_permutations_sees_more_than_single_ranks():
    accuracy = load("permutations").accuracies()
    linear = accuracy["linear in the permutation matrix"]
    features = accuracy["Fastfood, degree 2"]
    exact = accuracy["exact kernel, degree 2"]
    assert features > linear + 0.04
    assert abs(features - exact) < 0.02


@pytest.mark.slow
def test_derivatives_and_permutations_agree_on_useless_columns():
    for sizes in load("importance").importances():
        assert sizes.sum() == pytest.approx(1)
        assert sizes[:5].min() > 0.05
        assert sizes[5:].max() < 0.01
