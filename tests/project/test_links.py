"""Links, file names and names of the package in the documentation exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "reproduction" / "README.md"])
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    """The anchors of headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def broken(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    found = []
    for path, anchor in LINK.findall(text):
        target = page if not path else (page.parent / path).resolve()
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{path}#{anchor}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](#one-two) [b](#three) [c](missing.md) [d](page.md#one-two)")
    assert broken(page) == ["#three", "missing.md#"]


PACKAGE = ROOT / "src" / "kitchenette"
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|hpp|cpp|json|md|toml|yml))`")
NAME = re.compile(r"`((?:kitchenette|benchmarks)(?:\.\w+)+)")


def unknown(text: str) -> list[str]:
    """Paths of the project and names of the package in a text that do not exist."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    paths = [path for path in PATH.findall(text) if not path.startswith("results/")]
    folders = (ROOT, ROOT / "src", PACKAGE)
    found = [path for path in paths if not any((folder / path).exists() for folder in folders)]
    return found + [name for name in NAME.findall(text) if not exists(name)]


def exists(name: str) -> bool:
    folder = ROOT / "src" if name.startswith("kitchenette.") else ROOT
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        path = folder.joinpath(*parts[:size])
        if path.is_dir() or path.with_suffix(".py").exists():
            break
    if folder == ROOT:  # benchmarks need libraries that may not be installed
        return size == len(parts)
    try:
        thing: object = importlib.import_module(".".join(parts[:size]))
    except ModuleNotFoundError as missing:  # of an extra that is not installed
        return not str(missing.name).startswith("kitchenette")
    for part in parts[size:]:
        if not hasattr(thing, part):
            return False
        thing = getattr(thing, part)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_names_in_the_text_exist(page):
    assert unknown(page.read_text(encoding="utf-8")) == []


def test_an_unknown_file_or_name_is_found():
    text = (
        "`maps/tefm.py`, `maps/nothing.py`, `kitchenette.data.source`, `kitchenette.data.nothing`"
    )
    assert unknown(text) == ["maps/nothing.py", "kitchenette.data.nothing"]
