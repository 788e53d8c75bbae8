"""The view of groups: found, looked at, reset with a preview, and changed by two people at once."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer
from playwright.sync_api import Locator, Page, expect

from kaspar.base.ids import TopicPartition
from tests.browser.accessibility import check_accessibility
from tests.browser.administration.conftest import (
    HOSTILE,
    RECORDS,
    NewTopicNamed,
    commit,
    committed,
    is_harmless,
    wait_for_lag,
)
from tests.browser.conftest import NewPage, Problems
from tests.browser.console import Console
from tests.browser.phone import check_fits_a_phone

_numbers = itertools.count()


@pytest.fixture
def topic(new_topic: NewTopicNamed) -> str:
    return new_topic(2)


@pytest.fixture
def group(secured: Console, topic: str) -> str:
    """Without members, with four and seven records read of two partitions."""
    name = f"billing-{next(_numbers)}"
    commit(secured, name, {TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 7})
    return name


@contextmanager
def reading(console: Console, topic: str, group: str) -> Iterator[None]:
    """A member of the group."""
    consumer = Consumer(
        {
            "bootstrap.servers": console.broker.bootstrap_servers,
            "group.id": group,
            "client.id": "reader",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        yield
    finally:
        consumer.close()


def cells(row: Locator) -> list[str]:
    return row.locator("td").all_inner_texts()


def preview(page: Page, target: str) -> Locator:
    """Of a reset of the group that the page shows."""
    page.get_by_role("button", name="Reset offsets…").click()
    page.get_by_label("Where to").select_option(target)
    page.get_by_role("button", name="Preview").click()
    dialog = page.get_by_role("dialog", name="Reset offsets")
    expect(dialog.get_by_role("table")).to_be_visible()
    return dialog


def test_groups_are_searched_and_opened_by_keyboard(page: Page, secured: Console, topic: str) -> None:
    commit(secured, HOSTILE, {TopicPartition(topic, 0): 4})
    wait_for_lag(secured, HOSTILE, RECORDS - 4)
    secured.open(page, "#/groups")
    page.keyboard.press("/")
    page.keyboard.type("IMG SRC")
    row = page.locator("tr[data-row]")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("<img src=x onerror=window.hacked=1>U+202E%2F")
    expect(row.locator("td").nth(4)).to_have_text(str(RECORDS - 4))
    check_accessibility(page)
    row.get_by_role("link").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("a/b <img")
    expect(page.get_by_role("table")).to_contain_text(topic)
    check_accessibility(page)
    assert is_harmless(page)
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_contain_text("a/b <img")
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("IMG SRC")


def test_the_largest_lag_comes_first(page: Page, secured: Console, new_topic: NewTopicNamed) -> None:
    topic = new_topic()
    for offset, name in ((9, "sorted-little"), (1, "sorted-much")):
        commit(secured, name, {TopicPartition(topic, 0): offset})
        wait_for_lag(secured, name, RECORDS - offset)
    secured.open(page, "#/groups?search=sorted-")
    expect(page.locator("tr[data-row]").first).to_contain_text("sorted-little")
    page.get_by_role("button", name="Lag", exact=True).click()
    expect(page.locator("tr[data-row]").first).to_contain_text("sorted-much")
    page.reload()
    expect(page.locator("tr[data-row]").first).to_contain_text("sorted-much")


def test_a_group_shows_its_lag_over_time_its_members_and_topics(
    page: Page, secured: Console, topic: str, group: str
) -> None:
    with reading(secured, topic, group):
        secured.open(page, f"#/groups/{group}")
        first = page.locator("tr[data-row]").first
        expect(first).to_contain_text("reader")
        assert cells(first)[:2] == [topic, "0"]
        expect(first.get_by_role("link", name="4", exact=True)).to_have_attribute(
            "href", f"#/messages/{topic}?partitions=0&at=offset%3A4&order=asc"
        )
        expect(page.locator(".chart canvas")).to_have_count(2)
        expect(page.locator(".figure", has_text="Members")).to_contain_text("1")
        page.get_by_role("tab", name="Members (1)").click()
        member = page.locator("tr[data-row]")
        expect(member).to_contain_text(f"{topic}: 0, 1")
        expect(member).to_contain_text("127.0.0.1")
        check_accessibility(page)
        page.get_by_role("tab", name="Details").click()
        expect(page.get_by_text("broker 1 (127.0.0.1:")).to_be_visible()


def test_offsets_are_reset_as_previewed(page: Page, secured: Console, topic: str, group: str) -> None:
    secured.open(page, f"#/groups/{group}")
    dialog = preview(page, "earliest")
    expect(dialog).to_contain_text("Up to 0 records will be skipped, and up to 11 records read again.")
    assert [cells(row)[:4] for row in dialog.locator("tr[data-row]").all()] == [
        [topic, "0", "4", "0"],
        [topic, "1", "7", "0"],
    ]
    check_accessibility(page)
    assert committed(secured, group) == {TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 7}
    dialog.get_by_role("button", name="Reset 2 partitions").click()
    expect(page.get_by_text(f"The offsets of {group} were reset.")).to_be_visible()
    expect(page.locator("tr[data-row]").first).to_contain_text(str(RECORDS))
    assert committed(secured, group) == {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0}


@pytest.mark.long
def test_every_target_is_previewed(page: Page, secured: Console, group: str) -> None:
    secured.open(page, f"#/groups/{group}")
    page.get_by_role("button", name="Reset offsets…").click()
    dialog = page.get_by_role("dialog", name="Reset offsets")
    for target, fields, new in (
        ("latest", {}, ["10", "10"]),
        ("shift", {"Records": "-3"}, ["1", "4"]),
        ("offset", {"Offset": "999"}, ["10", "10"]),
        ("time", {"Time": "2020-01-01T00:00:00"}, ["0", "0"]),
        ("duration", {"How long": "1"}, ["10", "10"]),
    ):
        dialog.get_by_label("Where to").select_option(target)
        for label, value in fields.items():
            dialog.get_by_label(label, exact=True).fill(value)
        dialog.get_by_role("button", name="Preview").click()
        rows = dialog.locator("tr[data-row]")
        expect(rows).to_have_count(2)
        assert [cells(row)[3] for row in rows.all()] == new
        dialog.get_by_role("button", name="Cancel").click()


def test_one_partition_can_be_reset(page: Page, secured: Console, topic: str, group: str, problems: Problems) -> None:
    problems.expected.add(404)
    secured.open(page, f"#/groups/{group}")
    page.get_by_role("button", name="Reset offsets…").click()
    page.get_by_label("Topic", exact=True).fill(topic)
    for wrong, sentence in (
        ("x", "Partitions must be numbers and ranges"),
        ("0-9", f"There is no partition {topic}-2"),
    ):
        page.get_by_role("textbox", name="Partitions").fill(wrong)
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text(sentence)
    page.get_by_role("textbox", name="Partitions").fill("1")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Reset 1 partition").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert committed(secured, group) == {TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 0}


def test_an_active_group_is_not_reset_and_says_why(page: Page, secured: Console, topic: str, group: str) -> None:
    with reading(secured, topic, group):
        secured.open(page, f"#/groups/{group}")
        dialog = preview(page, "earliest")
        expect(dialog.get_by_role("alert")).to_contain_text("The group is active (its state is Stable")
        expect(dialog.get_by_role("button", name="Reset 2 partitions")).to_be_disabled()


def test_of_two_people_the_slower_one_is_told(
    page: Page, new_page: NewPage, secured: Console, topic: str, group: str, problems: Problems
) -> None:
    problems.expected.add(409)
    secured.open(page, f"#/groups/{group}")
    dialog = preview(page, "earliest")
    other = new_page()
    secured.open(other, f"#/groups/{group}")
    preview(other, "latest").get_by_role("button", name="Reset 2 partitions").click()
    expect(other.get_by_text(f"The offsets of {group} were reset.")).to_be_visible()
    other.close()
    dialog.get_by_role("button", name="Reset 2 partitions").click()
    expect(dialog.get_by_role("alert")).to_contain_text("have changed since the preview")
    assert set(committed(secured, group).values()) == {RECORDS}
    dialog.get_by_role("button", name="Cancel").click()  # back to the choice, for a new preview
    page.get_by_role("button", name="Preview").click()
    expect(dialog.locator("tr[data-row]").first).to_contain_text(str(RECORDS))


def test_members_offsets_and_groups_are_removed(
    page: Page, secured: Console, topic: str, group: str, problems: Problems
) -> None:
    problems.expected.update({404, 409})
    with reading(secured, topic, group):
        secured.open(page, f"#/groups/{group}?tab=members")
        page.get_by_role("button", name="Remove…").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove member").click()
        expect(page.get_by_text("reader was removed.")).to_be_visible()
    secured.open(page, f"#/groups/{group}?tab=topics")
    page.get_by_role("button", name="Delete offsets…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert committed(secured, group) != {}
    page.get_by_role("button", name="Delete offsets…").click()
    delete = page.get_by_role("dialog").get_by_role("button", name="Delete offsets")
    expect(delete).to_be_disabled()
    page.get_by_role("dialog").get_by_role("textbox").fill(topic)
    delete.click()
    expect(page.get_by_text("No topics.")).to_be_visible()
    assert committed(secured, group) == {}

    page.get_by_role("button", name="Delete group…").click()
    delete = page.get_by_role("dialog").get_by_role("button", name="Delete group")
    expect(delete).to_be_disabled()
    page.get_by_role("dialog").get_by_role("textbox").fill(group)
    delete.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Groups")
    secured.open(page, f"#/groups/{group}")
    expect(page.get_by_role("alert").first).to_contain_text(f"There is no group {group}")


def test_views_fit_a_phone(page: Page, secured: Console, group: str) -> None:
    views = ("transactions", "transactions?tab=hanging", "quotas", "acls", "users", "doctor")
    tabs = [f"groups/{group}{tab}" for tab in ("", "?tab=members", "?tab=topics", "?tab=details")]
    check_fits_a_phone(page, secured, *(f"#/{view}" for view in (*tabs, "groups", *views)))
