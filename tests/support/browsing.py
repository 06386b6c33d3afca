"""A real browser for the tests of pages, and the check that everyone can use them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

BROWSERS = (
    "chromium-headless-shell",  # without the parts that draw windows: half the processor time
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)
PATIENCE = 120_000  # milliseconds, for a crowded machine
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def no_browser(what: str) -> str:
    """Why tests are skipped, loudly."""
    return f"NO BROWSER ON THIS MACHINE: {what} is NOT tested; install one of {', '.join(BROWSERS)}"


@contextmanager
def opened_browser() -> Iterator[Any]:
    with sync_playwright() as running:
        opened = running.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        yield opened
        opened.close()


def check_accessible(page: Any) -> None:
    """Refuse serious findings of axe."""
    found = Axe().run(page).response["violations"]
    serious = [
        (entry["id"], [node["html"][:120] for node in entry["nodes"][:3]])
        for entry in found
        if entry["impact"] in ("serious", "critical")
    ]
    assert serious == []
