"""The studio as people meet it: the whole way in a real browser, by mouse and by keyboard."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from itertools import pairwise, product
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

import rldp
from rldp.cli import main
from tests.support.files import ROOT

pytest.importorskip("starlette", reason="the studio extra is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe is not installed")

from rldp.presentation.texts import set_in_words
from rldp.studio.choices import Choice
from rldp.studio.limits import Limits
from rldp.studio.serving import Studio
from rldp.studio.tasks import Point
from rldp.uncertainty import SETS, set_around
from rldp.uncertainty.registry import offered
from tests.support.browsing import BROWSER, PATIENCE, check_accessible, no_browser, opened_browser
from tests.support.waiting import until

if BROWSER is None:
    pytest.skip(no_browser("the page of the studio"), allow_module_level=True)

pytestmark = pytest.mark.slow  # a browser takes its time

PICTURES = ROOT / "build" / "studio"
STEPS = ("data", "tradeoff", "protocol", "risk", "use", "code")
ADULT = "data=adult&s=race&u=sex&alpha=0.05&epsilon=1"


@pytest.fixture(scope="module")
def studio(forked_workers):  # noqa: ARG001  # they fork
    server = Studio(limits=Limits(upload=32 << 20))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server
    server.stop()
    thread.join(30)


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@contextmanager
def page_of(browser, width=1280, scheme="light", expected=()):
    """A page on which nothing goes wrong: no error on its console, no request off this machine."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    told, hosts = [], set()
    page.on("console", lambda entry: told.append(f"{entry.type}: {entry.text}"))
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    yield page
    unexpected = [text for text in told if not any(known in text for known in expected)]
    assert unexpected == []
    assert hosts <= {"127.0.0.1", None, ""}  # blobs have no host
    context.close()


@pytest.fixture
def page(browser):
    with page_of(browser) as page:
        yield page


def picture(page, name):
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def chosen(page):
    return parse_qs(urlsplit(page.url).fragment)


def saved(page, button, folder):
    with page.expect_download() as waiting:
        page.click(button)
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def column_role(page, column, role):
    page.check(f'input[name="role-{column}"][value="{role}"]')


def test_the_whole_way_on_adult(page, studio, tmp_path, capsys):
    page.goto(studio.address)
    page.wait_for_selector("text=Drop a CSV or Parquet file here")
    picture(page, "0-empty")
    check_accessible(page)

    page.click("text=Try the bundled census table")
    page.wait_for_selector("table.heat")
    assert page.locator("table.heat tbody tr").count() == 5
    assert "8,642" in page.inner_text("table.heat")
    assert "1.705" in page.inner_text(".facts")
    picture(page, "1-data")
    check_accessible(page)

    page.click("text=See the trade-off")
    page.wait_for_selector('table.choose tr:has(input[value="best"]) >> text=% ')
    assert {"ceiling", "best", "polyopt", "ir", "grr"} <= set(
        page.inner_text("table.choose").replace("\t", "\n").split()
    )
    page.hover("svg.chart", position={"x": 420, "y": 80})
    page.wait_for_selector(".tip:visible >> text=±")
    picture(page, "2-tradeoff")
    page.click("text=Information kept")
    page.hover("svg.chart", position={"x": 420, "y": 80})
    page.wait_for_selector(".tip:visible >> text=bits")
    page.select_option("#goal", "information")
    page.wait_for_selector("text=The best for the goal first: information")
    check_accessible(page)
    page.fill("#epsilon", "0.8")
    page.wait_for_selector("text=At ε = 0.8")
    assert chosen(page)["epsilon"] == ["0.8"]
    page.fill("#alpha", "0.01")
    page.wait_for_selector("text=accepts at α = 0.01")
    best = page.wait_for_selector(
        'table.choose tr:has(input[value="best"]) >> text=% '
    ).inner_text()
    F = rldp.ChiSquareSet(rldp.datasets.adult("race", "sex"), alpha=0.01)
    further = {"epsilon_given_u": 0.8, "epsilon_all": 6.0}  # what the best promises beside ε over F
    least = rldp.design(F, 0.8, "ir", **further).normalised_utility
    most = rldp.ceiling(F, 0.8, **further)
    assert 100 * least - 0.1 <= float(best.strip("≥ %")) <= 100 * most / F.table.entropy + 0.1
    page.check('input[name="protocol"][value="grr-cr"]')

    page.click("text=Design grr-cr at ε = 0.8")
    page.wait_for_selector("table.heat")
    expected = rldp.design(F, 0.8, "grr-cr")
    assert f"{expected.utility / np.log(2):.4f} bits" in page.inner_text(".facts")
    page.select_option("#protocol", "ir")
    page.wait_for_selector("h2 >> text=ir: S and U reported independently")
    assert "epsilon_2" in page.inner_text("main")
    picture(page, "3-protocol")
    check_accessible(page)

    page.click("text=What can someone learn?")
    page.wait_for_selector("#proof >> text=✓ Proved")
    page.wait_for_selector("text=What is not promised")
    page.click("#prove")
    page.wait_for_selector("#prove:enabled")
    assert "exact inequalities" in page.inner_text("#proof")
    picture(page, "4-risk")
    check_accessible(page)

    page.click("text=Use it")
    page.wait_for_selector("#release")
    protocol = saved(page, "#save-protocol", tmp_path)
    public = saved(page, "#save-public", tmp_path)
    page.click("#release")
    reports = saved(page, "#save-reports", tmp_path)
    page.click("#estimate")
    page.wait_for_selector("text=32,561 reports")
    page.click("#plan-button")
    page.wait_for_selector("#plan >> text=for ± 1 percentage points")
    picture(page, "5-use")
    check_accessible(page)
    p = rldp.load(protocol)
    same = rldp.design(F, 0.8, "ir")
    assert p.document() == same.document()
    assert "holds the counts of the sample" in page.inner_text(".note >> nth=0")
    assert rldp.load(public).fingerprint == p.fingerprint
    assert main(["verify", str(protocol)]) == 0
    assert "proved: ε = 0.8" in capsys.readouterr().out
    assert p.estimate(reports).n == 32_561

    page.click("text=Take the code")
    page.wait_for_selector("#save-report:enabled")
    assert "rldp.load('race.rldp.json')" in page.inner_text("pre >> nth=0")
    assert "holds the counts of the sample" in page.inner_text("main")
    again = saved(page, "#save-protocol", tmp_path)
    assert "It holds the counts of the sample." in page.inner_text("#saved")
    assert rldp.load(again).fingerprint == p.fingerprint
    saved(page, "#save-public", tmp_path)
    assert "It holds no counts of the sample." in page.inner_text("#saved")
    assert saved(page, "#save-records", tmp_path).name == "race-records.parquet"
    picture(page, "6-code")
    check_accessible(page)
    script, report = (saved(page, f"#save-{what}", tmp_path) for what in ("script", "report"))
    compile(script.read_text(), "script", "exec")
    page.goto(report.as_uri())  # stands alone
    assert "Proved" in page.inner_text("main")
    picture(page, "7-report")


def test_a_reload_and_a_shared_link_come_back(page, browser, studio):
    page.goto(f"{studio.address}#step=tradeoff&{ADULT}&protocol=srr")
    page.wait_for_selector("text=At ε = 1")
    page.fill("#epsilon", "2.5")
    page.wait_for_selector("text=At ε = 2.5")
    page.click("text=Design srr at ε = 2.5")
    page.wait_for_selector("h2 >> text=srr:")
    facts = page.inner_text(".facts")
    page.reload()
    page.wait_for_selector("h2 >> text=srr:")
    assert page.inner_text(".facts") == facts
    with page_of(browser) as other:
        other.goto(page.url)
        other.wait_for_selector("h2 >> text=srr:")
        assert other.inner_text(".facts") == facts
        other.go_back()
    page.go_back()
    page.wait_for_selector("text=At ε = 2.5")


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """200,000 people, two U columns, and a few missing values."""
    path = tmp_path_factory.mktemp("upload") / "survey.csv"
    rng = np.random.default_rng(5)
    income, sex, age = (rng.integers(0, n, 200_000) for n in (3, 2, 4))
    words = np.array(["low", "mid", "high"])[income]
    ages = np.array(["<30", "30-49", "50-69", ""])[np.where(rng.random(200_000) < 0.01, 3, age % 3)]
    rows = map(",".join, zip(words, np.array(["f", "m"])[sex], ages, strict=True))
    path.write_text("income,sex,age\n" + "\n".join(rows) + "\n")
    return path


def test_an_upload_of_200_000_rows(browser, studio, survey, tmp_path):
    with page_of(
        browser, expected=["status of 422"]
    ) as page:  # missing values are refused at first
        _upload_and_release(page, studio, survey, tmp_path)


def _upload_and_release(page, studio, survey, tmp_path):
    page.goto(studio.address)
    page.set_input_files("#file", survey)
    page.wait_for_selector("text=200,000 records")
    column_role(page, "income", "s")
    column_role(page, "sex", "u")
    page.wait_for_selector("table.heat")
    column_role(page, "age", "u")
    error = page.wait_for_selector('[data-error="missing"]:visible')  # beside the field
    assert "'age'" in error.inner_text()
    page.select_option("#missing", "drop")
    page.wait_for_selector("text=records with missing values are dropped")
    table = rldp.read_table(survey, "income", ["sex", "age"], missing="drop")
    assert f"{table.n:,}" in page.inner_text(".facts")
    assert f"{table.counts[0, 0]:,}" in page.inner_text("table.heat")
    identity = chosen(page)["data"][0]
    page.goto(
        f"{page.url.partition('#')[0]}#step=use&data={identity}&s=income&u=sex&u=age"
        "&missing=drop&alpha=0.05&epsilon=1&protocol=srr"
    )
    page.select_option("#format", "parquet")
    page.click("#release")
    reports = saved(page, "#save-reports", tmp_path)
    protocol = saved(page, "#save-protocol", tmp_path)
    e = rldp.load(protocol).estimate(reports)
    assert e.n == table.n
    assert abs(e.s.estimate - table.p_s).max() < 0.05


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ragged.csv", b"s,u\n1,2\n3,4,5\n", "record 2 after the header"),
        ("notes.docx", b"PK\x03\x04", "expected a file named .csv"),
        ("latin.csv", "s,u\nJosé,x\n".encode("latin-1"), "save the file as UTF-8"),
        ("large.csv", b"s,u\n" + b"1,2\n" * (9 << 20), "command line"),
    ],
)
def test_a_bad_file_says_what_is_wrong_beside_the_field(
    name, content, message, browser, studio, tmp_path
):
    path = tmp_path / name
    path.write_bytes(content)
    with page_of(browser, expected=["status of 422"]) as page:
        page.goto(studio.address)
        page.set_input_files("#file", path)
        place = page.wait_for_selector('[data-error="data"]:visible')
        assert message in place.inner_text()
        assert page.locator("table").count() == 0
        page.click("text=Try the bundled census table")  # nothing is stuck
        page.wait_for_selector("table.heat")
        assert not page.is_visible('[data-error="data"]')


@pytest.mark.filterwarnings("ignore::rldp.LabelWarning")  # the page tells it
def test_odd_labels_are_told_with_the_table(page, studio):
    rows = "".join(
        f"{city},{age}\n" for city in ("José", "Jose\u0301", "Ann") for age in (1, 2, -9)
    )
    data = studio.session.add_file("survey.csv", f"city,age\n{rows}".encode())
    page.goto(f"{studio.address}#step=data&data={data}&s=city&u=age")
    page.wait_for_selector("text=The joint table")
    notes = page.locator(".note").all_inner_texts()
    assert any("look alike and are counted apart" in note and "U+0301" in note for note in notes)
    assert any("surveys use for missing values: '-9'" in note for note in notes)


def test_a_wrong_number_is_told_beside_its_field(browser, studio):
    with page_of(browser, expected=["status of 422"]) as page:
        page.goto(f"{studio.address}#step=tradeoff&{ADULT}&protocol=ir")
        page.wait_for_selector("text=At ε = 1")
        page.fill("#epsilon", "-1")
        place = page.wait_for_selector('[data-error="epsilon"]:visible')
        assert place.inner_text() == "Expected 0 < epsilon ≤ 100, got -1."
        assert page.get_attribute("#epsilon", "aria-invalid") == "true"
        page.fill("#epsilon", "3")
        page.wait_for_selector("text=At ε = 3")
        assert not page.is_visible('[data-error="epsilon"]')


def test_a_decimal_comma_is_read_and_said(browser, studio):
    with page_of(browser, expected=["status of 422"]) as page:  # on the way there is a 0
        _commas(page, studio)


def _commas(page, studio):
    page.goto(f"{studio.address}#step=tradeoff&{ADULT}&protocol=ir")
    page.wait_for_selector("text=At ε = 1")
    page.fill("#epsilon", "")
    page.locator("#epsilon").press_sequentially("0,5")
    page.wait_for_selector("h2 >> text=At ε = 0.5")
    assert page.inner_text("#epsilon-understood") == "read as 0.5"
    assert chosen(page)["epsilon"] == ["0.5"]
    page.goto(f"{studio.address}#step=use&{ADULT}&protocol=ir")
    page.fill("#margin", "2,5")
    page.click("#plan-button")
    page.wait_for_selector("#plan >> text=for ± 2.5 percentage points")


def test_every_set_can_be_chosen_with_its_parameters(page, studio):
    page.goto(f"{studio.address}#step=tradeoff&{ADULT}&protocol=ir")
    page.wait_for_selector("text=At ε = 1")
    told = page.locator("#kind option").evaluate_all("all => all.map((one) => one.value)")
    assert told == list(offered())
    has_defaults = [k for k in told if all(p.default is not None for p in SETS[k].parameters)]
    assert {"chi-square", "renyi", "kl", "total-variation", "all", "known"} <= {*has_defaults}
    for kind in has_defaults:
        page.select_option("#kind", kind)
        words = set_in_words(set_around(rldp.datasets.adult("race", "sex"), kind, {}))
        page.wait_for_selector(f"text={words}")
        own = {parameter.name for parameter in SETS[kind].parameters}
        for name in ("alpha", "order"):
            assert page.is_visible(f"#{name}") == (name in own)
    page.select_option("#kind", "renyi")
    page.fill("#order", "1,5")
    page.wait_for_selector("text=a power-divergence test of order 1.5")
    assert (chosen(page)["set"], chosen(page)["order"]) == (["renyi"], ["1.5"])
    page.reload()
    page.wait_for_selector("text=a power-divergence test of order 1.5")
    page.click("text=Design ir at ε = 1")
    page.wait_for_selector("table.heat")


@pytest.mark.parametrize("text", ["", "abc", "1.000,5"])
def test_no_figures_and_no_way_on_without_an_epsilon(text, browser, studio):
    with page_of(browser, expected=["status of 422"]) as page:  # the server may say so first
        page.goto(f"{studio.address}#step=tradeoff&{ADULT}&protocol=ir")
        page.wait_for_selector("text=Design ir at ε = 1")
        page.fill("#epsilon", text)
        page.wait_for_selector("button:disabled >> text=Design")
        assert "Enter an ε above 0" in page.inner_text("#reason")
        assert page.locator("a >> text=Design").count() == 0
        assert page.locator("table.choose, svg.chart").count() == 0
        assert page.is_visible('[data-error="epsilon"]')
        assert page.get_attribute('#steps a[data-step="protocol"]', "href") is None
        page.goto(page.url.replace("step=tradeoff", "step=protocol"))  # nor by the address
        page.wait_for_selector("button:disabled >> text=Design")
        page.fill("#epsilon", "2")
        page.wait_for_selector("a >> text=Design ir at ε = 2")


def test_figures_are_those_of_the_epsilon_above_them(page, studio):
    page.goto(f"{studio.address}#step=tradeoff&{ADULT}&protocol=ir")
    page.wait_for_selector("a >> text=Design ir at ε = 1")
    held = []
    page.route("**/api/curves", lambda route: held.append(route))  # an answer that takes its time
    page.fill("#epsilon", "2")
    page.wait_for_selector("button:disabled >> text=Design ir at ε = 2")
    page.set_viewport_size({"width": 900, "height": 900})  # draws again
    assert page.inner_text("table.choose caption").endswith("at ε = 1")
    assert page.locator("a >> text=Design").count() == 0
    for route in held:
        route.continue_()
    page.wait_for_selector("a >> text=Design ir at ε = 2")
    assert page.inner_text("table.choose caption").endswith("at ε = 2")


def test_the_axis_follows_the_epsilon_that_is_asked_for(page, studio):
    last = "() => [...document.querySelectorAll('svg.chart .tick.middle')].at(-1)?.textContent"
    page.goto(f"{studio.address}#step=tradeoff&{ADULT}&protocol=ir")
    page.wait_for_selector("h2 >> text=At ε = 1")
    page.fill("#epsilon", "50")
    page.wait_for_function(f"{last} === '50'")
    page.wait_for_selector('table.choose tr:has(input[value="best"]) >> text=% ')  # searched, too
    page.fill("#epsilon", "1")
    page.wait_for_function(f"{last} === '8'")
    page.reload()
    page.wait_for_function(f"{last} === '8'")


def test_what_a_search_cut_short_found_is_drawn_as_a_bound(page, studio):
    choice = Choice("adult", ("race",), ("income",), parameters={"alpha": 0.05}, goal="information")
    known = studio.session.setting(choice).searched
    for name in ("ceiling", "polyopt", "best"):
        for epsilon, kept in ((0.25, 0.1), (0.5, 0.2), (1.0, 0.5), (1.5, 0.4), (2.0, 0.3)):
            is_early = name != "ceiling" and epsilon >= 1
            known.put((name, epsilon), Point(name, epsilon, kept, 2.0, is_early))
    page.goto(
        f"{studio.address}#step=tradeoff&data=adult&s=race&u=income&alpha=0.05&epsilon=2"
        "&goal=information"
    )
    page.wait_for_selector(".mark.hollow.of-polyopt")
    assert page.locator(".mark.hollow.of-polyopt").count() >= 3
    assert page.locator(".mark.of-polyopt:not(.hollow)").count() >= 2
    assert "at least this much" in page.inner_text(".early")
    row = page.inner_text('table.choose tr:has(input[value="polyopt"])')
    assert f"≥ {0.5 / np.log(2):.4f} bits" in row
    assert "found at ε = 1" in row
    heights = page.evaluate(
        "[...document.querySelectorAll('.mark.of-polyopt')].map("
        "(mark) => mark.transform.baseVal[0].matrix.f)"
    )
    assert len(heights) >= 5
    assert all(after <= before for before, after in pairwise(heights[:5]))  # upwards
    page.hover("svg.chart", position={"x": 250, "y": 80})
    page.wait_for_selector(".tip >> text=the search ended early: at least this much")


def test_goal_and_layers_are_chosen_said_and_kept(browser, studio):
    with page_of(browser, expected=["status of 422"]) as page:
        _wishes(page, studio)


def _wishes(page, studio):
    small = "data=adult&s=sex&u=income&alpha=0.05&epsilon=1"
    page.goto(f"{studio.address}#step=tradeoff&{small}&protocol=best")
    page.wait_for_selector("text=The best for the goal first: estimates of every cell")
    assert "someone who knows the person's U: one report changes" in page.inner_text("form")
    assert "at most a factor e^6" in page.inner_text("#epsilon_all-hint")
    page.select_option("#goal", "s")
    page.wait_for_selector("text=The best for the goal first: estimates of the shares of S")
    page.select_option("#epsilon_all-kind", "none")
    assert page.inner_text("#epsilon_all-hint").startswith("Not promised")
    page.select_option("#epsilon_given_u-kind", "own")
    page.wait_for_selector('[data-error="epsilon_given_u"]:visible')  # a number is missing
    page.wait_for_selector("button:disabled >> text=Design")
    page.fill("#epsilon_given_u", "0,8")
    page.wait_for_selector("a >> text=Design best at ε = 1")
    assert "at most a factor e^0.8" in page.inner_text("#epsilon_given_u-hint")
    words = chosen(page)
    assert (words["goal"], words["epsilon_given_u"], words["epsilon_all"]) == (
        ["s"],
        ["0.8"],
        ["none"],
    )
    page.reload()
    page.wait_for_selector("a >> text=Design best at ε = 1")
    assert page.input_value("#epsilon_given_u") == "0.8"
    assert page.input_value("#epsilon_all-kind") == "none"
    page.check('input[name="protocol"][value="grr"]')
    assert "grr does not promise it" in page.inner_text("#epsilon_given_u-hint")
    page.check('input[name="protocol"][value="best"]')
    page.click("text=Design best at ε = 1")
    page.wait_for_selector("text=a factor e^0.8 ≤ 2.226. This is proved")
    assert "reports for ± 1 point" in page.inner_text(".facts")
    assert "--goal s --epsilon-given-u 0.8 --epsilon-all none" in page.text_content("details.same")
    check_accessible(page)
    page.select_option("#protocol", "grr")
    page.wait_for_selector("h2 >> text=grr:")
    assert not page.is_visible("#goal")
    assert not page.is_visible("#epsilon_given_u-kind")
    assert page.is_visible("#for-information")
    page.goto(f"{studio.address}#step=protocol&{ADULT}&protocol=ue-cr")
    page.wait_for_selector("text=Some of the goal cannot be estimated from these reports")
    assert "The shares of race cannot all be estimated" in page.inner_text("main")


@pytest.mark.usefixtures("little_work")  # which workers inherit
def test_a_limit_for_those_who_know_part_of_u_and_its_price(page, studio):
    cells = product(("low", "high"), "fm", ("young", "old"))
    rows = [f"{','.join(cell)}\n" * (9 + 4 * ((i * 5) % 7)) for i, cell in enumerate(cells)]
    content = "income,sex,age\n" + "".join(rows)
    data = studio.session.add_file("people.csv", content.encode())
    one = f"data={data}&s=income&u=sex&alpha=0.05&epsilon=1&goal=s"
    page.goto(f"{studio.address}#step=tradeoff&{one}")
    page.wait_for_selector("text=The best for the goal first: estimates of the shares of S")
    assert not page.is_visible("#epsilon_given_part-kind")  # one column has no parts
    page.goto(f"{studio.address}#step=tradeoff&{one}&u=age")
    page.wait_for_selector("th >> text=ε, part known")
    hint = page.inner_text("#epsilon_given_part-hint")
    assert "some of the U columns of the person but not all" in hint
    assert "at most a factor e^2, for every distribution in F" in hint
    page.select_option("#epsilon_given_part-kind", "none")
    hint = page.inner_text("#epsilon_given_part-hint")
    assert hint.startswith("Not promised")
    assert "more than someone who knows all of them" in hint
    page.select_option("#epsilon_given_part-kind", "own")
    page.fill("#epsilon_given_part", "1.5")
    page.wait_for_selector("text=at most a factor e^1.5, for every distribution in F")
    assert chosen(page)["epsilon_given_part"] == ["1.5"]

    page.click("#price-promises")
    page.wait_for_selector("#prices table >> nth=1")
    told = page.inner_text("#prices")
    assert "someone who knows some of the columns of U, and not the rest" in told
    assert "as asked" in page.inner_text('#prices tr:has-text("ε = 1.5")')
    assert "epsilon_given_part=1.5" in page.text_content("#prices details.same")
    check_accessible(page)
    page.select_option("#epsilon_given_part-kind", "auto")
    page.wait_for_selector("#prices table", state="detached")  # it is not the price of this choice


def test_a_search_ends_when_its_tab_is_closed(browser, studio, monkeypatch):
    monkeypatch.setattr(studio.session.jobs, "patience", 2.0)
    for other in studio.session.jobs.running():
        other.stop(grace=0.0)
    until(lambda: not studio.session.jobs.running())
    with page_of(browser) as page:
        page.goto(f"{studio.address}#step=tradeoff&data=adult&s=race&u=income&alpha=0.2")
        page.wait_for_selector("#stop")
        (job,) = studio.session.jobs.running()
        page.context.close()
    until(lambda: job.state != "running")
    assert job.state == "stopped"
    assert job.worker.process.poll() is not None


def test_the_page_says_against_whom_a_factor_holds(page, studio):
    for step, place in (("protocol", ".facts"), ("risk", "#proof >> text=✓ Proved")):
        page.goto(f"{studio.address}#step={step}&{ADULT}&protocol=ir")
        page.wait_for_selector(place)
        text = page.inner_text("main")
        assert "Someone who knows nothing else about the person" in text
        assert "Someone who knows the person's sex" in text
        assert "Whatever is true of the population" in text
        assert "anyone's odds" not in text
    page.goto(studio.address)
    assert "that no report moves the odds" not in page.inner_text("main")


def test_a_file_that_is_not_held_any_more_can_be_dropped_again(browser, studio):
    with page_of(browser, expected=["status of 404"]) as page:
        page.goto(f"{studio.address}#step=data&data=0123456789ab&s=a")
        place = page.wait_for_selector('[data-error="data"]:visible')
        assert "drop it again" in place.inner_text()


def test_computations_can_be_stopped(page, studio):
    page.goto(f"{studio.address}#step=tradeoff&data=adult&s=race&u=income&epsilon=1.7")
    page.click("#stop")
    page.wait_for_selector("text=Searches stopped: what was found stays.")
    page.click("text=Go on")
    page.wait_for_selector("#stop")
    page.goto(
        f"{studio.address}#step=protocol&data=adult&s=relationship&u=education&epsilon=1"
        "&protocol=polyopt"
    )
    page.wait_for_selector("text=is possible")  # by then there is a draft
    page.click("#stop")
    page.wait_for_selector("text=proved like any other.")  # the best so far, or the first draft
    assert "cells can be estimated" in page.inner_text(".facts")
    page.click("text=What can someone learn?")
    page.wait_for_selector("#proof >> text=✓ Proved")


def test_a_slow_press_on_stop_is_not_lost(page, studio):
    """News of the job comes while the button is down; focus and button stay where they are."""
    page.goto(f"{studio.address}#step=tradeoff&data=adult&s=race&u=income&epsilon=2.3")
    page.focus("#stop")
    page.hover("#stop")
    place = page.locator("#stop").bounding_box()
    page.mouse.down()
    page.wait_for_selector('table.choose tr:has(input[value="polyopt"])')  # a point is drawn
    for _ in range(3):
        page.wait_for_event("response", lambda response: "/api/jobs/" in response.url)
    assert page.evaluate("document.activeElement.id") == "stop"
    assert page.locator("#stop").bounding_box() == place
    page.mouse.up()
    page.wait_for_selector("text=Searches stopped: what was found stays.")


def test_the_way_by_keyboard_alone(browser, studio):
    with page_of(browser, expected=["status of 422"]) as page:  # for a moment there is no U
        _keys(page, studio)


def _keys(page, studio):
    page.goto(studio.address)
    page.wait_for_selector("#adult")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.focus("#adult")
    page.keyboard.press("Enter")
    page.wait_for_selector("table.heat")
    page.focus('input[name="role-income"][value=""]')
    page.focus('input[name="role-sex"][value="u"]')
    page.keyboard.press("ArrowRight")  # sex is left out
    page.wait_for_function("!location.hash.includes('u=sex')")
    page.focus('input[name="role-income"][value=""]')
    page.keyboard.press("ArrowLeft")  # income becomes U
    page.wait_for_function("location.hash.includes('u=income')")
    page.wait_for_selector("table.heat >> text=>50K")
    page.focus("text=See the trade-off")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=At ε = 1")
    page.focus("#epsilon-slider")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=At ε = 1.3")
    assert chosen(page)["epsilon"] == ["1.3"]
    assert page.input_value("#epsilon") == "1.3"


def test_every_step_fits_and_is_accessible_small_and_large_light_and_dark(browser, studio):
    ready = {
        "data": "table.heat",
        "tradeoff": "table.choose",
        "protocol": "table.heat",
        "risk": "#proof >> text=✓ Proved",
        "use": "#plan-button",
        "code": "#save-report:enabled",
    }
    with page_of(browser, 400, "dark") as page:
        for step in STEPS:
            page.goto(f"{studio.address}#step={step}&{ADULT}&protocol=ue-cr")
            for width, scheme in ((400, "light"), (1280, "dark"), (400, "dark")):
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=scheme)
                page.wait_for_selector(ready[step])
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                picture(page, f"{width}-{scheme}-{step}")
                if width == 400:
                    check_accessible(page)


def test_the_server_speaks_of_no_request(studio, capfd):
    import urllib.request

    with urllib.request.urlopen(f"{studio.address}api/session?name=secret", timeout=60) as answer:
        assert json.load(answer)["version"] == rldp.__version__
    assert capfd.readouterr() == ("", "")
