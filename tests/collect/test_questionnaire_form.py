"""The form of a questionnaire in a real browser: it asks for one block, and keeps to it."""

from __future__ import annotations

import json

import pytest

import rldp

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from rldp.collect.counted import estimate
from rldp.collect.invitations import invite
from rldp.collect.opening import open_collection
from tests.support.browsing import BROWSER, PATIENCE, no_browser, opened_browser
from tests.support.collecting import served
from tests.support.questionnaires import COLUMNS, small

if BROWSER is None:
    pytest.skip(no_browser("the form of a questionnaire"), allow_module_level=True)

pytestmark = pytest.mark.slow  # a browser takes its time


def asked(page):
    """The columns that the form asks for."""
    page.wait_for_selector("#draw")
    names = page.eval_on_selector_all("input", "found => found.map((input) => input.name)")
    return set(names)


def answer(page, name):
    page.check('input[name="income"]')
    page.check(f'input[name="{name}"]')
    page.click("#draw")
    page.wait_for_selector("#report")
    page.click("#send")
    page.wait_for_selector("text=Your report has arrived")


def test_a_device_is_asked_for_one_block_and_keeps_it(tmp_path):
    path, store = tmp_path / "survey.public.json", tmp_path / "s.sqlite"
    small().public().save(path)
    seen = []
    with served(path, store) as server, opened_browser() as browser:
        for _ in range(6):
            context = browser.new_context(locale="en")
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.goto(server.form)
            columns = asked(page)
            (name,) = columns - {"income"}
            assert name in COLUMNS
            page.reload()
            assert asked(page) == columns  # another visit is no other draw
            with page.expect_request(lambda request: request.method == "POST") as sent:
                answer(page, name)
            (report,) = json.loads(sent.value.post_data)["reports"]
            assert set(report) == {"id", "protocol", "report"}
            assert report["protocol"] == small().fingerprint
            assert report["report"].startswith(f"{small().names.index(name)} ")
            seen.append(name)
            context.close()
    collection = open_collection(str(store))
    e = estimate(collection, allow_few=True)
    collection.store.close()
    assert e.reports == {name: seen.count(name) for name in COLUMNS}


def test_an_invitation_has_one_block_on_every_device(tmp_path):
    path, store, links = tmp_path / "survey.public.json", tmp_path / "s.sqlite", tmp_path / "links"
    small().public().save(path)
    with served(path, store) as server, opened_browser() as browser:
        collection = open_collection(str(store))
        invite(collection, 3, links, origin=server.origin)
        collection.store.close()
        for link in links.read_text().split()[1:]:
            blocks = []
            for _ in range(2):
                context = browser.new_context(locale="en")
                context.set_default_timeout(PATIENCE)
                page = context.new_page()
                page.goto(link)
                blocks.append(asked(page))
                context.close()
            assert blocks[0] == blocks[1]
            assert len(blocks[0]) == 2
    assert rldp.load(path).names == tuple(COLUMNS)
