"""Topics in the page: listed, created, changed, emptied and deleted."""

from collections.abc import Iterator

import httpx
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect

from kaspar.base.ids import TopicPartition, uuid_to_text
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.deletion import delete_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.session import raise_first
from kaspar.client.admin.topics import TopicDescription, describe_topics, list_topics
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import Problems
from tests.browser.console import Console
from tests.browser.phone import check_fits_a_phone
from tests.peers.observed import wait_until


@pytest.fixture
def topic(console: Console) -> Iterator[str]:
    """With two partitions and ten records in each."""
    name = "journeys"
    with console.admin() as admin:
        raise_first(create_topics(admin, [NewTopic(name, 2, 1)]).values())
        producer = Producer({"bootstrap.servers": console.broker.bootstrap_servers})
        for number in range(20):
            producer.produce(name, f"record {number}", partition=number % 2)
        producer.flush(30)
        yield name
        delete_topics(admin, [name])


def _partitions(console: Console, topic: str) -> int:
    with console.admin() as admin:
        found = describe_topics(admin, [topic])[topic]
        assert isinstance(found, TopicDescription)
        return len(found.partitions)


def test_a_topic_is_created_and_then_shown(page: Page, console: Console) -> None:
    console.open(page, "#/topics")
    page.get_by_role("button", name="Create topic").click()
    dialog = page.get_by_role("dialog", name="Create topic")
    dialog.get_by_label("Name").fill("invoices")
    dialog.get_by_label("Partitions").fill("4")
    dialog.get_by_label("Clean-up").select_option("compact")
    dialog.get_by_label("Other settings").fill("min.insync.replicas=1")
    check_accessibility(page)
    dialog.get_by_role("button", name="Create topic").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("invoices")
    expect(page.get_by_text("The topic invoices was created.")).to_be_visible()
    expect(page.get_by_role("table").locator("tbody tr")).to_have_count(4)
    page.get_by_role("tab", name="Settings").click()
    policy = page.get_by_role("row").filter(has_text="cleanup.policy")
    expect(policy).to_contain_text("compact")
    expect(policy).to_contain_text("this topic")


def test_what_the_broker_refuses_is_a_sentence_in_the_form(page: Page, console: Console, problems: Problems) -> None:
    problems.expected.add(400)
    console.open(page, "#/topics")
    page.get_by_role("button", name="Create topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("no blanks")
    dialog.get_by_role("button", name="Create topic").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no blanks")
    expect(dialog.get_by_label("Name")).to_have_value("no blanks")


def test_the_list_is_searched_by_keyboard_and_keeps_the_search_in_its_address(
    page: Page, console: Console, topic: str
) -> None:
    console.open(page, "#/topics")
    expect(page.get_by_role("link", name=topic)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("JOURN")
    expect(page.locator("tbody tr[data-row]")).to_have_count(1)
    row = page.locator("tbody tr[data-row]")
    expect(row).to_contain_text("in sync")
    expect(row).to_contain_text("20")
    check_accessibility(page)
    page.reload()
    expect(page.get_by_label("Search topics")).to_have_value("JOURN")
    expect(page.locator("tbody tr[data-row]")).to_have_count(1)
    page.get_by_role("link", name=topic).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=topic)).to_be_focused()
    expect(page.get_by_text("Topic id")).to_be_visible()


def test_many_topics_are_paged_and_sorted_by_the_server(page: Page, console: Console) -> None:
    names = [f"many-{number:02}" for number in range(70)]
    with console.admin() as admin:
        topics = [NewTopic(name, 1 + number % 3, 1) for number, name in enumerate(names)]
        raise_first(create_topics(admin, topics).values())
        try:
            console.open(page, "#/topics?search=many-")
            pager = page.get_by_role("navigation", name="Pages")
            expect(pager).to_contain_text("1–50 of 70")
            pager.get_by_role("button", name="Last page").click()
            expect(pager).to_contain_text("51–70 of 70")
            expect(page.get_by_role("link", name="many-69")).to_be_visible()
            page.get_by_role("button", name="Partitions").click()
            expect(pager).to_contain_text("1–50 of 70")
            expect(page.locator("tbody tr[data-row]").first).to_contain_text("many-02")
            expect(page.get_by_role("columnheader", name="Partitions")).to_have_attribute("aria-sort", "descending")
        finally:
            delete_topics(admin, names)


def test_a_setting_is_changed_and_reset(page: Page, console: Console, topic: str) -> None:
    console.open(page, f"#/topics/{topic}?tab=settings")
    page.get_by_label("Search settings").fill("retention.ms")
    row = page.get_by_role("row").filter(has=page.get_by_role("button", name="retention.ms", exact=True))
    row.get_by_role("button").click()
    dialog = page.get_by_role("dialog", name="retention.ms")
    expect(dialog).to_contain_text("default")
    check_accessibility(page)
    dialog.get_by_label("Value").fill("3600000")
    dialog.get_by_role("button", name="Change").click()
    expect(row).to_contain_text("3600000")
    expect(row).to_contain_text("this topic")
    row.get_by_role("button").click()
    page.get_by_role("dialog", name="retention.ms").get_by_role("button", name="Reset to default").click()
    page.get_by_role("dialog", name="Reset retention.ms").get_by_role("button", name="Reset", exact=True).click()
    expect(row).to_contain_text("604800000")


def test_the_topic_id_is_shown_as_kafka_prints_it(page: Page, console: Console, topic: str) -> None:
    with console.admin() as admin:
        described = describe_topics(admin, [topic])[topic]
    assert isinstance(described, TopicDescription)
    console.open(page, f"#/topics/{topic}")
    expect(page.get_by_text("Topic id")).to_have_text(f"Topic id {uuid_to_text(described.topic_id)}")


def test_a_question_is_withdrawn_when_the_page_goes_elsewhere(page: Page, console: Console, topic: str) -> None:
    console.open(page, "#/topics")
    page.get_by_role("link", name=topic).click()
    page.get_by_role("button", name="Delete topic").click()
    expect(page.get_by_role("dialog", name=f"Delete the topic {topic}?")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert _partitions(console, topic) == 2


def test_partitions_are_added(page: Page, console: Console, topic: str) -> None:
    console.open(page, f"#/topics/{topic}")
    page.get_by_role("button", name="Add partitions").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Total partitions").fill("5")
    dialog.get_by_role("button", name="Add partitions").click()
    expect(page.locator("tbody tr[data-row]")).to_have_count(5)
    assert _partitions(console, topic) == 5


def test_records_are_deleted_before_an_offset(page: Page, console: Console, topic: str) -> None:
    console.open(page, f"#/topics/{topic}")
    page.get_by_role("button", name="Delete records").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Of", exact=True).select_option("1")
    dialog.get_by_label("Before the offset").fill("4")
    expect(dialog.get_by_role("button", name="Delete records")).to_be_disabled()
    dialog.get_by_label(f"Type {topic} to confirm").fill(topic)
    dialog.get_by_role("button", name="Delete records").click()
    expect(page.get_by_text(f"Records of {topic} were deleted.")).to_be_visible()
    cells = page.locator("tbody tr[data-row]").nth(1).locator("td")
    expect(cells.nth(5)).to_have_text("4")
    expect(cells.nth(7)).to_have_text("6")


def test_a_topic_is_deleted_only_after_its_name_was_typed(page: Page, console: Console, topic: str) -> None:
    console.open(page, f"#/topics/{topic}")
    page.get_by_role("button", name="Delete topic").click()
    dialog = page.get_by_role("dialog", name=f"Delete the topic {topic}?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Delete topic").click()
    expect(dialog.get_by_role("button", name="Delete topic")).to_be_disabled()
    dialog.get_by_role("textbox").fill(topic)
    dialog.get_by_role("button", name="Delete topic").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
    with console.admin() as admin:
        assert topic not in list_topics(admin)


def test_the_groups_that_read_a_topic_are_shown_with_their_lag(page: Page, console: Console, topic: str) -> None:
    with console.admin() as admin:
        committed = {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 7}
        assert set(alter_group_offsets(admin, "travellers", committed).values()) == {None}
    groups = f"{console.url}/api/topics/{topic}/groups"
    wait_until(lambda: [each["lag"] for each in httpx.get(groups).json()] == [3], "the monitor has seen the lag")
    console.open(page, f"#/topics/{topic}")
    page.get_by_role("tab", name="Consumers").click()
    row = page.get_by_role("table", name=f"Groups that read {topic}").locator("tr[data-row]")
    expect(row.locator("td").nth(0)).to_have_text("travellers")
    expect(row).to_contain_text("3")
    check_accessibility(page)
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("travellers")


def test_views_fit_a_phone(page: Page, console: Console, topic: str) -> None:
    tabs = [f"#/topics/{topic}{tab}" for tab in ("", "?tab=settings", "?tab=consumers")]
    check_fits_a_phone(page, console, "#/topics", *tabs)


def test_a_topic_that_does_not_exist_is_a_sentence(page: Page, console: Console, problems: Problems) -> None:
    problems.expected.add(404)
    console.open(page, "#/topics/never-made")
    expect(page.get_by_role("alert").first).to_contain_text("There is no topic never-made.")
