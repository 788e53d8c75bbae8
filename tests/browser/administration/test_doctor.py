"""The doctor's view: findings by severity, commands that can be copied, and another look."""

import re

from playwright.sync_api import Page, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.administration.conftest import NewTopicNamed
from tests.browser.administration.test_transactions import begin, hang
from tests.browser.conftest import NewPage
from tests.browser.console import Console


def test_findings_are_shown_by_severity(page: Page, secured: Console) -> None:
    secured.open(page, "#/doctor")
    for title in ("Problems", "Warnings", "Notes"):
        expect(page.get_by_role("heading", name=re.compile(rf"{title} \(\d+\)"))).to_be_visible()
    check_accessibility(page)


def test_another_look_finds_what_is_new_and_forgets_what_is_mended(
    new_page: NewPage, secured: Console, new_topic: NewTopicNamed
) -> None:
    topic = new_topic()
    begin(secured, "doctor", topic).commit_transaction(30)  # the doctor looks where there are transactions
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    secured.open(page, "#/doctor")
    hang(secured, topic)
    page.get_by_role("button", name="Check now").click()
    finding = page.locator("article.finding", has_text=topic)
    expect(finding).to_be_visible()
    command = finding.locator("code").first.inner_text()
    finding.get_by_role("button", name=re.compile("^Copy")).click()
    expect(page.get_by_text("Command copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == command

    secured.open(page)
    expect(page.locator("a.figure", has_text="Findings")).to_contain_text("problem")

    secured.open(page, "#/transactions?tab=hanging")
    page.get_by_label("Topic").fill(topic)
    page.get_by_role("button", name="Search").click()
    page.get_by_role("button", name="Abort…").click()
    page.get_by_role("dialog").get_by_role("textbox").fill(topic)
    page.get_by_role("dialog").get_by_role("button", name="Abort", exact=True).click()
    expect(page.get_by_text("No hanging transactions.")).to_be_visible()
    secured.open(page, "#/doctor")
    page.get_by_role("button", name="Check now").click()
    expect(finding).to_have_count(0)
