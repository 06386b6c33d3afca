"""The form as people meet it, in a real browser: what leaves the device, and what does not."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import numpy as np
import pytest

import rldp

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe is not installed")

from rldp.collect.counted import estimate
from rldp.collect.invitations import invite
from rldp.collect.opening import open_collection
from tests.support.browsing import BROWSER, PATIENCE, check_accessible, no_browser, opened_browser
from tests.support.collecting import served
from tests.support.files import ROOT

if BROWSER is None:
    pytest.skip(no_browser("the form of the collector"), allow_module_level=True)

pytestmark = pytest.mark.slow  # a browser takes its time

PEOPLE = 60
PHONE = {"width": 390, "height": 844}
PICTURES = ROOT / "build" / "collect"
S = ("SECRETillness", "SECREThealth")
U = ("SECRETcity", "SECRETland")
SPECIAL = (0, 3, 5, 7)
# answers and sends by clicks; at the end the next person has another device
ANSWER = """async ([s, u]) => {
  const find = async (selector) => {
    for (;;) {
      const found = document.querySelector(selector);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  (await find(`input[value="${s}"]`)).click();
  (await find(`input[value="${u}"]`)).click();
  (await find("#draw")).click();
  (await find("#send")).click();
  await find("#send[hidden]");
  localStorage.clear();
}"""


@pytest.fixture(scope="module")
def protocol(tmp_path_factory):
    """A protocol whose reports are y0, y1, ...: no label of S or U can be part of one."""
    path = tmp_path_factory.mktemp("form") / "health.public.json"
    table = rldp.Table([[30, 20], [60, 90]], sensitive={"health": S}, useful={"home": U})
    p = rldp.design(rldp.ChiSquareSet(table), 2.0, effort="quick")
    assert p.public().report_labels.all[0] == "y0"
    p.public().save(path)
    return path


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


class Device:
    """A phone whose every request is kept, and on which nothing goes wrong."""

    def __init__(self, browser, expected=(), **more):
        self.context = browser.new_context(**{"viewport": PHONE, "locale": "en"} | more)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.requests, self._told, self._expected = [], [], expected
        self.page.on("console", lambda entry: self._told.append(f"{entry.type}: {entry.text}"))
        self.page.on("pageerror", lambda error: self._told.append(f"error: {error}"))
        self.context.on("request", lambda request: self.requests.append(request))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            odd = [x for x in self._told if not any(known in x for known in self._expected)]
            assert odd == []
            assert self.context.cookies() == []
        self.context.close()

    @property
    def sent(self):
        return [r.post_data for r in self.requests if r.method == "POST"]


def answer(page, s, u):
    page.check(f'input[value="{s}"]')
    page.check(f'input[value="{u}"]')
    page.click("#draw")
    page.wait_for_selector("#report")


def send(page):
    page.click("#send")
    page.wait_for_selector("text=Your report has arrived")


def picture(page, name):
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def test_sixty_people_answer_and_only_their_reports_leave_the_device(browser, protocol, tmp_path):
    rng = np.random.default_rng(11)
    truth = np.array([[0.2, 0.1], [0.3, 0.4]])
    cells = rng.choice(4, PEOPLE, p=truth.ravel())
    actual = np.bincount(cells, minlength=4).reshape(2, 2) / PEOPLE
    store = tmp_path / "s.sqlite"
    expected = ["ERR_INTERNET_DISCONNECTED"]
    with served(protocol, store) as server, Device(browser, expected) as device:
        page = device.page
        for person, (i, j) in enumerate(zip(*np.unravel_index(cells, (2, 2)), strict=True)):
            page.goto(server.form)
            if person in SPECIAL:
                page.wait_for_selector("#draw")
                _special(person, device, S[i], U[j])
                page.evaluate("localStorage.clear()")
            else:
                page.evaluate(ANSWER, [S[i], U[j]])
        check_requests(device, rldp.load(protocol).fingerprint)
        assert len({json.loads(body)["reports"][0]["id"] for body in device.sent}) == PEOPLE
        assert len(device.sent) >= PEOPLE + 2  # one twice, one again
        _check_operator(browser, server)
    collection = open_collection(str(store))
    e = estimate(collection, level=0.9999, simultaneous=True)
    collection.store.close()
    assert e.n == PEOPLE
    assert np.all((e.low <= truth) & (truth <= e.high))
    assert np.all((e.low <= actual) & (actual <= e.high))


def check_first(page):
    picture(page, "questions")
    check_accessible(page)
    page.click("#draw")  # without an answer
    assert "Please answer" in page.inner_text("#missing")


def _special(person, device, s, u):
    """Those who do more than answer and send."""
    page = device.page
    if person == 3:  # by keyboard alone
        _by_keyboard(page, s, u)
        return
    if person == 0:
        check_first(page)
    answer(page, s, u)
    if person == 0:
        picture(page, "report")
        check_accessible(page)
        assert "Someone who knows your home" in page.inner_text("main")
    if person == 5:  # offline at first
        device.context.set_offline(True)
        page.click("#send")
        page.wait_for_selector("text=There is no connection")
        device.context.set_offline(False)
        page.wait_for_selector("text=Your report has arrived")
    elif person == 7:  # twice
        before = len(device.sent)
        send(page)
        first = page.inner_text("#report")
        page.reload()
        page.wait_for_selector("text=on an earlier visit")
        assert page.locator("input").count() == 0
        assert page.inner_text("#report") == first
        page.click("#send")
        page.wait_for_selector("text=Thank you")
        bodies = device.sent[before:]
        assert len(bodies) == 2
        assert bodies[0] == bodies[1]
    else:
        send(page)


def _by_keyboard(page, s, u):
    for value in (s, u):
        wanted = f"document.activeElement.value === '{value}'"
        page.keyboard.press("Tab")
        if not page.evaluate("document.activeElement.type === 'radio'"):
            page.keyboard.press("Tab")
        page.keyboard.press("Space")
        for _ in range(2):
            if not page.evaluate(wanted):
                page.keyboard.press("ArrowDown")
        assert page.evaluate(wanted)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#report")
    for _ in range(3):
        if page.evaluate("document.activeElement.id") != "send":
            page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Your report has arrived")


def check_requests(device, fingerprint):
    """S and U never leave: not in an address, not in a header, not in a body."""
    for request in device.requests:
        parts = urlsplit(request.url)
        assert parts.hostname == "127.0.0.1"
        assert parts.query == ""
        assert request.method in ("GET", "POST")
        whole = request.url + json.dumps(request.headers) + (request.post_data or "")
        assert "SECRET" not in whole
        assert "cookie" not in request.headers
        assert request.headers.get("referer", "") == ""
        if request.method == "POST":
            document = json.loads(request.post_data)
            (report,) = document["reports"]
            assert set(document) == {"version", "reports"}
            assert set(report) == {"id", "protocol", "report"}
            assert report["protocol"] == fingerprint
        else:
            assert request.post_data is None
    paths = {urlsplit(r.url).path for r in device.requests if r.method == "GET"}
    known = ("/code/", "/v1/survey", f"/v1/protocols/{fingerprint}")
    assert all(path == "/" or path.startswith(known) for path in paths)


def _check_operator(browser, server):
    with Device(browser, viewport={"width": 1100, "height": 900}) as device:
        page = device.page
        page.goto(server.operator)
        page.wait_for_selector(f"text={PEOPLE} reports")
        page.wait_for_selector("table")
        told = page.inner_text("main")
        assert "Open survey" in told
        assert "SECRETillness | SECRETcity" in told
        assert "suspected forgeries" in told
        picture(page, "operator")
        check_accessible(page)
        assert all(server.token not in r.url.partition("#")[0] for r in device.requests)
    with Device(browser, ["401"]) as device:
        device.page.goto(f"{server.origin}/operator#wrong")
        device.page.wait_for_selector("text=token is missing or wrong")


def test_a_request_that_tells_something_is_caught(browser, protocol, tmp_path):
    """The control: a page that sends the answer along is found by the same check."""
    with served(protocol, tmp_path / "s.sqlite") as server, Device(browser) as device:
        device.page.route(
            "**/code/*/sending.js",
            lambda route: route.fulfill(
                body=route.fetch()
                .text()
                .replace('fetch("/v1/reports"', 'fetch("/v1/reports?a=" + document.title'),
                content_type="text/javascript",
            ),
        )
        device.page.goto(server.form)
        answer(device.page, S[0], U[0])
        send(device.page)
        with pytest.raises(AssertionError):
            check_requests(device, rldp.load(protocol).fingerprint)


@pytest.mark.slow
def test_an_invitation_serves_one_device_and_pins_the_protocol(browser, protocol, tmp_path):
    store = tmp_path / "s.sqlite"
    with served(protocol, store, settings={"invited": "yes"}) as server:
        collection = open_collection(str(store))
        invite(collection, 2, tmp_path / "links.csv", server.origin)
        collection.store.close()
        _, link, _ = (tmp_path / "links.csv").read_text().splitlines()
        token = link.partition("#i=")[2].partition("&")[0]
        with Device(browser) as device:
            device.page.goto(server.form)
            device.page.wait_for_selector("text=This survey is by invitation")
            device.page.goto("about:blank")
            device.page.goto(link)
            answer(device.page, S[0], U[0])
            send(device.page)
            assert json.loads(device.sent[0])["reports"][0]["invitation"] == token
            assert all(token not in r.url.partition("#")[0] for r in device.requests)
            device.page.reload()
            device.page.wait_for_selector("text=on an earlier visit")
            assert token not in device.page.evaluate("JSON.stringify(localStorage)")
        with Device(browser, ["410"]) as device:
            device.page.goto(link)
            answer(device.page, S[1], U[0])
            device.page.click("#send")
            device.page.wait_for_selector("text=This invitation was used before")
        with Device(browser) as device:
            device.page.goto(link[:-4] + "beef")
            device.page.wait_for_selector("text=another protocol than your invitation names")
        other = protocol.with_name("other.json")
        rldp.design(rldp.AllDistributions(rldp.Table([[1, 1], [1, 1]])), 9.0, "grr").public().save(
            other
        )
        with Device(browser) as device:  # a server that gives another protocol than it names
            device.page.route(
                "**/v1/protocols/*", lambda route: route.fulfill(body=other.read_text())
            )
            device.page.goto(link)
            device.page.wait_for_selector("text=another protocol than your invitation names")
            assert device.page.locator("input").count() == 0
    collection = open_collection(str(store))
    assert collection.store.status() == (1, 2, 1)
    collection.store.close()


def test_a_second_language_and_questions_in_an_order_of_their_own(browser, protocol, tmp_path):
    (tmp_path / "en.toml").write_text(
        'title = "Health"\n[questions.home]\ntext = "Where do you live?"\nhint = "Mostly"\n'
        f'[questions.health]\ntext = "How are you?"\nlabels = {{ {S[0]} = "ill" }}\n'
    )
    (tmp_path / "de.toml").write_text(
        'language = "de"\ntitle = "Gesundheit"\n[questions]\nhealth = "Wie geht es?"\n'
        '[page]\ndraw = "Los"\n'
    )
    questions = [tmp_path / "en.toml", tmp_path / "de.toml"]
    with (
        served(protocol, tmp_path / "s.sqlite", questions=questions) as server,
        Device(browser, locale="de-AT") as device,
    ):
        page = device.page
        page.goto(server.form)
        page.wait_for_selector("h1 >> text=Gesundheit")
        assert page.get_attribute("html", "lang") == "de"
        assert page.inner_text("#draw") == "Los"
        assert "Ihre Antworten bleiben auf diesem Gerät" in page.inner_text("main")
        check_accessible(page)
        page.select_option("#language", "en")
        page.wait_for_selector("h1 >> text=Health")
        assert page.locator("legend").all_inner_texts() == ["Where do you live?", "How are you?"]
        page.check("text=ill")
        assert page.is_checked(f'input[value="{S[0]}"]')


def test_a_kept_report_of_an_earlier_protocol_is_sent_instead_of_a_new_one(
    browser, protocol, tmp_path
):
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    newer = tmp_path / "newer.public.json"
    table = rldp.Table([[30, 20], [60, 90]], sensitive={"health": S}, useful={"home": U})
    rldp.design(rldp.ChiSquareSet(table), 1.0, "grr").public().save(newer)
    with Device(browser) as device:
        with served(protocol, old) as server:
            port = server.port
            device.page.goto(server.form)
            answer(device.page, S[0], U[0])
            send(device.page)
        with served(newer, new, port=port, earlier=[str(old)]) as server:
            device.page.goto(server.form)
            device.page.wait_for_selector("text=under an earlier protocol that still counts")
            device.page.click("#send")
            device.page.wait_for_selector("text=Thank you")
        assert device.sent[0] == device.sent[1]
    for store, n in ((old, 1), (new, 0)):
        collection = open_collection(str(store))
        assert collection.store.status().reports == n
        collection.store.close()


def test_a_report_that_nobody_sent_is_kept_and_never_posted(browser, protocol, tmp_path):
    with (
        served(protocol, tmp_path / "s.sqlite") as server,
        Device(browser, ["ERR_INTERNET_DISCONNECTED"]) as device,
    ):
        first = device.page
        first.goto(server.form)
        answer(first, S[0], U[0])
        body = first.text_content("#body")
        first.close()
        for _ in range(2):  # look at it once more, and once more
            page = device.context.new_page()
            page.clock.install()
            page.goto(server.form)
            page.wait_for_selector("text=It has not been sent")
            assert page.locator("input").count() == 0
            assert page.text_content("#body") == body
            device.context.set_offline(True)
            device.context.set_offline(False)  # the connection is back
            page.clock.run_for(600_000)
            page.evaluate("fetch('/v1/survey').then((response) => response.text())")
            check_accessible(page)
            assert device.sent == []
            page.close()
        device.page = device.context.new_page()
        device.page.goto(server.form)
        device.page.wait_for_selector("#report")
        send(device.page)
        assert device.page.locator("#unsent").count() == 0
        assert device.sent == [body]
        assert server.collection.store.status().reports == 1


def test_a_press_while_offline_is_one_post_on_the_next_visit(browser, protocol, tmp_path):
    with (
        served(protocol, tmp_path / "s.sqlite") as server,
        Device(browser, ["ERR_INTERNET_DISCONNECTED"]) as device,
    ):
        device.page.goto(server.form)
        answer(device.page, S[0], U[0])
        body = device.page.text_content("#body")
        device.context.set_offline(True)
        device.page.click("#send")
        device.page.wait_for_selector("text=There is no connection")
        device.page.close()
        device.requests.clear()
        device.context.set_offline(False)
        for _ in range(2):
            page = device.context.new_page()
            page.goto(server.form)
            page.wait_for_selector("text=Your report has arrived")
            page.close()
        assert device.sent == [body]
        assert server.collection.store.status().reports == 1


def test_a_refused_report_is_posted_again_only_by_another_press(browser, protocol, tmp_path):
    with (
        served(protocol, tmp_path / "s.sqlite") as server,
        Device(browser, ["403"]) as device,
    ):
        device.page.goto(server.form)
        answer(device.page, S[0], U[0])
        server.collection.store.set_settings({"invited": "yes"})
        device.page.click("#send")
        device.page.wait_for_selector("text=The report was not taken")
        device.page.reload()
        device.page.wait_for_selector("text=It has not been sent")
        device.page.evaluate("fetch('/v1/survey').then((response) => response.text())")
        assert len(device.sent) == 1


def test_two_windows_draw_one_report(browser, protocol, tmp_path):
    with served(protocol, tmp_path / "s.sqlite") as server, Device(browser) as device:
        other = device.context.new_page()
        for page in (device.page, other):
            page.goto(server.form)
            page.wait_for_selector("#draw")
        answer(device.page, S[0], U[0])
        answer(other, S[1], U[1])
        bodies = [page.text_content("#body") for page in (device.page, other)]
        assert bodies[0] == bodies[1]
        assert "SECRET" not in device.page.evaluate("JSON.stringify(localStorage)")
        send(device.page)
        send(other)
        assert server.collection.store.status().reports == 1


def test_a_browser_that_keeps_nothing_draws_nothing(browser, protocol, tmp_path):
    with served(protocol, tmp_path / "s.sqlite") as server, Device(browser) as device:
        forbid = "Object.defineProperty(window, 'localStorage', {get() { throw new Error() }})"
        device.context.add_init_script(forbid)
        device.page.goto(server.form)
        device.page.wait_for_selector("text=does not let the page keep your report")
        assert device.page.locator("input").count() == 0
