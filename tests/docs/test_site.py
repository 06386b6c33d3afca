"""The site as `make docs` built it: search, links and accessibility in a real browser."""

from __future__ import annotations

import http.server
import threading
from functools import partial

import pytest

pytest.importorskip("axe_playwright_python", reason="axe is not installed")

from tests.support.browsing import BROWSER, check_accessible, no_browser, opened_browser
from tests.support.snippets import ROOT

SITE = ROOT / "build" / "site"
SEARCHED = {
    "how many people": "choose",
    "choose epsilon": "troubleshooting",
    "no data yet": "troubleshooting",
    "already exists": "troubleshooting",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason=no_browser("the site")),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="`make docs` was not run"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    handler = partial(Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as opened:
        yield opened


def test_the_front_page_is_found_and_fetches_nothing_from_elsewhere(browser, address):
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address, wait_until="networkidle")
    page.wait_for_url("**/docs/index.html")
    assert page.locator("h1").first.inner_text().startswith("Documentation")
    assert all(url.startswith((address, "data:")) for url in asked)


@pytest.mark.parametrize("words", SEARCHED)
def test_search_finds(browser, address, words):
    page = browser.new_page()
    page.goto(f"{address}/search.html?q={words.replace(' ', '+')}")
    page.get_by_text("Search finished").wait_for()
    found = page.locator("#search-results ul.search > li > a")
    assert any(SEARCHED[words] in link for link in found.evaluate_all("x => x.map(a => a.href)"))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
@pytest.mark.parametrize("name", ["README", "docs/choose", "docs/reference-python"])
def test_pages_can_be_used_by_everyone(browser, address, name, width, scheme):
    viewport = {"width": width, "height": 900}
    page = browser.new_page(viewport=viewport, color_scheme=scheme)
    page.goto(f"{address}/{name}.html")
    check_accessible(page)
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
