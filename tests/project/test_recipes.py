"""The recipes in the documentation run as printed, each by itself, and show what they say."""

from __future__ import annotations

import doctest
import re
import warnings
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
COMMON, *SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
TITLES = [section.partition("\n")[0] for section in SECTIONS]
NAMES = [
    "LinearSVC",
    "LogisticRegression",
    "CalibrationDisplay",
    "SGDClassifier",
    "SGDOneClassSVM",
    "KMeans",
    "KernelPCA",
    "permutation_importance",
]


def examples(text: str, title: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(text, {}, title, "recipes.md", 0)


RECIPES = [
    pytest.param(title, section, marks=pytest.mark.slow if "KMeans" in title else (), id=title)
    for title, section in zip(TITLES, SECTIONS, strict=True)
]


@pytest.mark.slow
@pytest.mark.parametrize(("title", "section"), RECIPES)
def test_a_recipe_works_by_itself(title, section):
    if "Display" in section:
        pytest.importorskip("matplotlib").use("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.DocTestRunner().run(examples(COMMON + section, title))
    assert result.failed == 0
    # Every recipe claims something that is true of the data.
    claims = [example for example in examples(section, title).examples if example.want]
    assert any(example.source.startswith("bool(") for example in claims)


def test_every_method_has_a_recipe():
    assert [re.search(r"`(\w+)`", title).group(1) for title in TITLES] == NAMES


def test_a_wrong_claim_is_noticed():
    wrong = COMMON + SECTIONS[0].replace("kernel > 0.97", "kernel > 1.01")
    printed: list[str] = []
    assert doctest.DocTestRunner().run(examples(wrong, "wrong"), out=printed.append).failed == 1
