"""The overview and the brokers, and what the page does when a broker dies and returns."""

from playwright.sync_api import Page, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import Problems
from tests.browser.console import Console, running_console
from tests.browser.phone import check_fits_a_phone


def test_health_and_rates_are_seen_in_one_look(page: Page, console: Console) -> None:
    console.open(page)
    expect(page.locator("a.figure", has_text="Brokers up")).to_contain_text("1")
    expect(page.locator("a.figure", has_text="Offline")).to_contain_text("0")
    requests = page.locator("figure", has_text="Requests")
    expect(requests.locator("canvas")).to_be_visible()
    expect(requests.locator("strong")).to_contain_text("/s")
    check_accessibility(page)


def test_charts_move_on_while_the_page_is_open(page: Page, console: Console) -> None:
    console.open(page)
    value = page.locator("figure", has_text="Requests").locator("strong")
    expect(value).to_contain_text("/s")
    first = value.inner_text()
    page.wait_for_function("(first) => document.querySelectorAll('figure strong')[3].innerText !== first", arg=first)


def test_the_brokers_lead_to_one_with_its_log_directories(page: Page, console: Console) -> None:
    console.open(page, "#/brokers")
    row = page.locator("tbody tr[data-row]")
    expect(row).to_contain_text("up")
    expect(row).to_contain_text("controller")
    check_accessibility(page)
    row.get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Broker 1")
    page.get_by_role("tab", name="Log directories").click()
    expect(page.get_by_role("heading", name=str(console.broker.data_dir))).to_be_visible()
    check_accessibility(page)


def test_a_dynamic_setting_of_a_broker_is_changed_and_a_static_one_cannot_be(page: Page, console: Console) -> None:
    console.open(page, "#/brokers/1?tab=settings")
    search = page.get_by_label("Search settings")
    search.fill("log.cleaner.threads")
    page.get_by_role("button", name="log.cleaner.threads", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value").fill("2")
    dialog.get_by_role("button", name="Change").click()
    row = page.locator("tbody tr[data-row]").filter(has_text="log.cleaner.threads")
    expect(row).to_contain_text("this broker")
    search.fill("log.dirs")
    page.get_by_role("button", name="log.dirs", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("only in the broker's file")


def test_a_setting_of_all_brokers_is_changed(page: Page, console: Console) -> None:
    console.open(page, "#/brokers")
    page.get_by_role("link", name="Settings of all brokers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("All brokers")
    page.get_by_label("Search settings").fill("log.retention.ms")
    page.get_by_role("button", name="log.retention.ms", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value").fill("86400000")
    dialog.get_by_role("button", name="Change").click()
    row = page.locator("tbody tr[data-row]").filter(has_text="log.retention.ms")
    expect(row).to_contain_text("86400000")
    check_accessibility(page)
    row.get_by_role("button").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset to default").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset", exact=True).click()
    expect(row).not_to_contain_text("86400000")


def test_the_level_of_a_logger_is_changed(page: Page, console: Console) -> None:
    console.open(page, "#/brokers/1?tab=loggers")
    row = page.locator("tbody tr[data-row]").nth(1)
    row.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Level").select_option("DEBUG")
    dialog.get_by_role("button", name="Change").click()
    expect(row).to_contain_text("DEBUG")


def test_views_fit_a_phone(page: Page, console: Console) -> None:
    tabs = ("", "?tab=settings", "?tab=log-dirs", "?tab=loggers")
    check_fits_a_phone(page, console, "#/", "#/brokers", *(f"#/brokers/1{tab}" for tab in tabs))


def test_a_broker_dies_and_returns_while_the_page_is_open(page: Page, problems: Problems) -> None:
    problems.expected.add(503)
    problems.loses_connection = True  # the console ends before the page does
    settings = {"client.default.api.timeout.ms": "1000"}
    with running_console(settings=settings) as console:
        console.open(page)
        expect(page.locator("a.figure", has_text="Brokers up")).to_contain_text("1")
        console.broker.kill()
        expect(page.get_by_text("The cluster does not respond")).to_be_visible()
        page.get_by_role("link", name="Topics", exact=True).click()
        expect(page.get_by_role("alert").first).to_contain_text("No broker can be reached")
        console.broker.start()
        expect(page.get_by_text("The cluster does not respond")).to_have_count(0, timeout=30_000)
        expect(page.get_by_text("There are no topics yet")).to_be_visible()
