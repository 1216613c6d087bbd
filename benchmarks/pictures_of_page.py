"""Screenshots of the page for the documentation, by Chromium without a window.

python -m benchmarks.pictures_of_page            # writes docs/images/page-light.png and -dark.png
python -m benchmarks.pictures_of_page --keep page.html
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

from kitchenette.report import compare, page

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = "1100,2700"


def taken(html: Path, image: Path, *, dark: bool) -> None:
    """Write a screenshot of a page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("Chromium is not installed.")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--window-size={SIZE}",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                f"--screenshot={image}",
                html.absolute().as_uri(),
            ],
            check=True,
            capture_output=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="where to keep the page")
    keep = parser.parse_args().keep
    X, y = load_digits(return_X_y=True)
    names = [f"row {i // 8}, column {i % 8}" for i in range(64)]
    found = compare(X, y, budget=25, columns=names, title="Handwritten digits: which map to take")
    with tempfile.TemporaryDirectory() as folder:
        html = keep or Path(folder, "page.html")
        html.write_text(page(found), encoding="utf-8")
        taken(html, IMAGES / "page-light.png", dark=False)
        taken(html, IMAGES / "page-dark.png", dark=True)


if __name__ == "__main__":
    main()
