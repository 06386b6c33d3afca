"""Take the pictures of the studio in docs: `python tools/picture_studio.py`; needs Chromium."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from rldp.studio.serving import Studio

DOCS = Path(__file__).resolve().parents[1] / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHOICE = "data=adult&s=race&u=sex&alpha=0.05&epsilon=1&protocol=best"
PATIENCE = 300_000  # milliseconds
# step, what it shows once it is ready, height
PICTURES = {
    "studio-tradeoff.png": ("tradeoff", "text=All searches are done.", 1240),
    "studio-risk.png": ("risk", "#proof >> text=✓ Proved", 1080),
}


def take(page: Page, address: str) -> None:
    """Take all pictures with one page."""
    page.set_default_timeout(PATIENCE)
    for name, (step, ready, height) in PICTURES.items():
        page.set_viewport_size({"width": 1280, "height": height})
        page.goto("about:blank")
        page.goto(f"{address}#step={step}&{CHOICE}")
        page.wait_for_selector(ready)
        page.screenshot(path=DOCS / name)


def main() -> int:
    """Serve the studio, open it, take the pictures."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        print(f"Expected one of {', '.join(BROWSERS)} on the PATH, found none.", file=sys.stderr)
        return 2
    server = Studio()
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        with sync_playwright() as running:
            opened = running.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            take(opened.new_page(), server.address)
            opened.close()
    finally:
        server.stop()
        thread.join(30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
