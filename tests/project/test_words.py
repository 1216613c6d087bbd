"""The project's texts are in American English and in the words of the field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "docs", "examples", "benchmarks", "reproduction", "tests")
ENDINGS = {".py", ".pyi", ".md", ".hpp", ".cpp", ".jinja", ".toml", ".yml"}

# British spellings, each with the American one. Words such as "exercise" and "otherwise" end in
# "ise" in both; the last pattern lists what stands before it in the others.
BRITISH = {
    r"\w*colour\w*": "color",
    r"\w*(beha|fa|fla)viour\w*|\w*favour\w*": "behavior, favor",
    r"\w*centred?|\w*centring": "center, centered",
    r"neighbour\w*": "neighbor",
    r"grey\w*": "gray",
    r"\w*(model|label|travel|cancel|signal|channel)l(ed|ing|er)\w*": "a single l",
    r"licence\w*": "license",
    r"analys(e|ed|ing)": "analyze",
    r"artefact\w*|programme|whilst|learnt|towards": "artifact, program, while, learned, toward",
    r"\w*(al|ar|er|or|an|tom|nom|im|in|col|ron|hod|th|ect|it|mat)is(e|ed|es|er|ers|ing|ations?)": (
        "ize"
    ),
}
# What a stranger would not understand, and the word of the field.
CIRCUMLOCUTIONS = {
    r"number of a row": "row index",
    r"the sign between": "delimiter",
    r"decimal sign": "decimal separator",
    r"yes (and|or) no": "booleans",
    r"has words": "strings",
    r"more exact than the factor": "iterative refinement",
    r"all weigh the same": "balanced class weights",
    r"rows (that )?(came|come) (or|and) (went|go)": "rows added or removed",
    r"counting rows": "rows of nonzero weight",
    r"a text that is equal for equal values": "digest",
    r"(leave|left|leaves) \w+ away": "omit",
    r"unless \w+ tell else": "by default",
    r"none of nothing": "None if the input is None",
    r"(house|houses|rooms?) of|every other room": "package",
    r"the map is drawn": "the map is sampled",
    r"lessons?\b|\blearner": "training set; solver, model",
    r"classes weigh the same": "balanced class weights",
    r"model to be like": "the model given as like",
    r"number of the (first|last|next) row": "row index",
}


def misspelled(text: str) -> Iterator[tuple[str, str]]:
    """British words of a text, and what to write instead."""
    for pattern, instead in BRITISH.items():
        for found in re.finditer(rf"\b({pattern})\b", text, re.IGNORECASE):
            yield found[0], instead


def unclear(text: str) -> Iterator[tuple[str, str]]:
    """Circumlocutions of a text, also across lines of a comment, and the word of the field."""
    flowing = re.sub(r"\s*\n\s*(#|//|\*)?\s*", " ", text)
    for pattern, instead in CIRCUMLOCUTIONS.items():
        for found in re.finditer(rf"\b({pattern})", flowing, re.IGNORECASE):
            yield found[0], instead


def texts(*names: str) -> list[Path]:
    """Text files in folders and files of the project, without generated ones."""
    found = []
    for name in names:
        path = ROOT / name
        found += [path] if path.is_file() else sorted(path.rglob("*"))
    skipped = {Path(__file__), ROOT / "docs/reproduction.html"}
    return [path for path in found if path.suffix in ENDINGS and path not in skipped]


def complaints(paths: list[Path], check) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {word!r}; write: {instead}"
        for path in paths
        for word, instead in check(path.read_text(encoding="utf-8"))
    ]


def test_spelling_is_american():
    files = texts(*FOLDERS, *(path.name for path in ROOT.glob("*.md")), "pyproject.toml")
    assert len(files) > 300
    assert complaints(files, misspelled) == []


def test_words_are_those_of_the_field():
    files = texts(*FOLDERS, "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    assert complaints(files, unclear) == []


@pytest.mark.parametrize(
    "word",
    ["colour", "behaviours", "centred", "neighbours", "labelled", "normalisation", "generalise"],
)
def test_a_british_word_is_found(word):
    assert [
        found for found, _ in misspelled(f"The {word} of promised, otherwise precise rows")
    ] == [word]


@pytest.mark.parametrize(
    "text",
    ["# the number of a\n# row", "The sign between values", "the target has words or yes and no"],
)
def test_a_circumlocution_is_found(text):
    assert list(unclear(text))
    assert not list(unclear("the row index, the delimiter, strings or booleans"))
