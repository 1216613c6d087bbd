"""Chromium without a window, for tests of pages."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass(frozen=True)
class Visit:
    """What happened when a page was opened."""

    console: list[str]
    requests: list[str]
    corner: tuple[int, int, int]  # the color of the first pixel of the screenshot
    size: int  # of the screenshot, in bytes


def opened(page: Path, screenshot: Path, *, dark: bool = False, height: int = 1600) -> Visit:
    """Open a page, and list everything that it asked for and complained about."""
    assert CHROMIUM is not None
    log = screenshot.with_suffix(".netlog")
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={screenshot.with_suffix('.profile')}",
            f"--window-size=1000,{height}",
            f"--log-net-log={log}",
            f"--screenshot={screenshot}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Visit(console, requests(log), first_pixel(screenshot), screenshot.stat().st_size)


def requests(log: Path) -> list[str]:
    """The addresses that the page, and not the browser for itself, asked for.

    The page itself comes from a file and is not among them.
    """
    recorded = json.loads(log.read_text(encoding="utf-8"))
    started = recorded["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    return [
        parameters["url"]
        for event in recorded["events"]
        # The browser's own requests, such as for updates, come from no page.
        if event["type"] == started
        and "url" in (parameters := event.get("params", {}))
        and parameters.get("initiator") != "not an origin"
    ]


def first_pixel(screenshot: Path) -> tuple[int, int, int]:
    """The color of the first pixel of a PNG file without interlacing."""
    data = screenshot.read_bytes()
    place, compressed = 8, b""
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        if kind == b"IDAT":
            compressed += data[place + 8 : place + 8 + length]
        place += 12 + length
    # The first pixel of a row is stored as it is, whatever the filter of the first row.
    pixel = zlib.decompressobj().decompress(compressed, 4)[1:4]
    return pixel[0], pixel[1], pixel[2]
