"""What is around every view: navigation, keys, themes, and what the page does when the console goes away."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import NewPage, Problems
from tests.browser.console import Console, running_console


def test_the_page_is_accessible_in_both_themes(page: Page, console: Console) -> None:
    console.open(page)
    for theme in ("light", "dark"):
        page.get_by_label("Theme").select_option(theme)
        check_accessibility(page)


def test_a_chosen_theme_is_kept(page: Page, console: Console) -> None:
    console.open(page)
    page.get_by_label("Theme").select_option("dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(15, 18, 22)"


def test_a_question_mark_shows_the_keys_and_escape_closes_them(page: Page, console: Console) -> None:
    console.open(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    check_accessibility(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_first_tab_stop_leads_past_the_navigation(page: Page, console: Console) -> None:
    console.open(page)
    page.locator("body").click(position={"x": 5, "y": 700})
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.className") != "skip":
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H1"


def test_an_unknown_address_says_so(page: Page, console: Console) -> None:
    console.open(page, "#/nothing")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(new_page: NewPage, console: Console, width: int) -> None:
    page = new_page(viewport={"width": width, "height": 700})
    console.open(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_says_when_the_console_is_gone_and_goes_on_when_it_returns(page: Page, problems: Problems) -> None:
    problems.loses_connection = True
    with running_console() as console:
        console.open(page)
        expect(page.get_by_text("The connection to the console is lost")).to_have_count(0)
        console.stop()
        expect(page.get_by_text("The connection to the console is lost")).to_be_visible(timeout=30_000)
        console.start()
        expect(page.get_by_text("The connection to the console is lost")).to_have_count(0, timeout=30_000)


def test_on_a_slow_network_the_page_shows_that_it_loads_and_then_works(page: Page, console: Console) -> None:
    console.open(page)
    network = page.context.new_cdp_session(page)
    network.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 700, "downloadThroughput": 50_000, "uploadThroughput": 20_000},
    )
    page.get_by_role("link", name="Topics", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Loading topics…")).to_be_visible()
    expect(page.get_by_text("Loading topics…")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
