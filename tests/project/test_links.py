"""Links between the project's pages lead to files and headings."""

from __future__ import annotations

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
