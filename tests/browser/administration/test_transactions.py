"""The view of transactions: an open one is ended, a hanging one is found and aborted."""

import dataclasses
import itertools

from confluent_kafka import Producer
from playwright.sync_api import Page, expect

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.produce import ProduceResponse
from kaspar.records import Record, build_batch
from tests.browser.accessibility import check_accessibility
from tests.browser.administration.conftest import HOSTILE, NewTopicNamed, is_harmless
from tests.browser.conftest import Problems
from tests.browser.console import Console
from tests.peers.raw_client import RawClient, produce_request
from tests.peers.raw_transactions import RawProducer, until_settled

BEFORE_KIP_890 = 11
"""A version of Produce whose partitions a client adds to its transaction itself."""
_numbers = itertools.count()


def begin(console: Console, name: str, topic: str) -> Producer:
    """A producer with an open transaction."""
    settings = {"bootstrap.servers": console.broker.bootstrap_servers, "transactional.id": name, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    assert producer.flush(30) == 0
    return producer


def hang(console: Console, topic: str) -> int:
    """A record of a transaction that no coordinator knows. The id of its producer."""
    with RawClient(console.broker.port) as client:
        producer_id = client.new_producer_id()
        batch = build_batch(
            [Record(1_000, None, b"hanging")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        request = dataclasses.replace(produce_request(topic, bytes(batch)), transactional_id="nobody")
        response = client.call(request, ProduceResponse, BEFORE_KIP_890)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return producer_id


def prepare(console: Console, name: str, topic: str) -> None:
    """A transaction that waits for its owner's decision (KIP-939)."""
    with RawClient(console.broker.port) as client:
        producer = RawProducer(client, name)
        producer.begin_life()
        assert producer.write(topic, b"prepared").error_code == ErrorCode.NONE
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=60_000,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            enable_2pc=True,
            keep_prepared_txn=True,
        )
        assert until_settled(lambda: client.call(request, InitProducerIdResponse, 6)).error_code == ErrorCode.NONE


def test_an_open_transaction_is_found_and_ended(page: Page, secured: Console, new_topic: NewTopicNamed) -> None:
    topic = new_topic()
    producer = begin(secured, HOSTILE, topic)
    secured.open(page, "#/transactions?phase=open")
    row = page.locator("tr[data-row]", has_text="onerror")
    expect(row).to_contain_text("Ongoing")
    check_accessibility(page)
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("a/b <img")
    expect(page.get_by_role("link", name=f"{topic}-0")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("button", name="Abort transaction…").click()
    dialog = page.get_by_role("dialog", name="Abort this transaction?")
    expect(dialog.get_by_role("button", name="Abort and fence")).to_be_disabled()
    dialog.get_by_role("textbox").fill(HOSTILE)
    dialog.get_by_role("button", name="Abort and fence").click()
    expect(page.get_by_role("button", name="Abort transaction…")).to_have_count(0)
    expect(page.get_by_text("None.")).to_be_visible()
    assert is_harmless(page)
    del producer


def test_a_transaction_that_has_ended_meanwhile_is_not_ended(
    page: Page, secured: Console, new_topic: NewTopicNamed, problems: Problems
) -> None:
    problems.expected.add(409)
    name = f"pay-{next(_numbers)}"
    producer = begin(secured, name, new_topic())
    secured.open(page, f"#/transactions/{name}")
    page.get_by_role("button", name="Abort transaction…").click()
    producer.commit_transaction(30)
    page.get_by_role("dialog").get_by_role("textbox").fill(name)
    page.get_by_role("dialog").get_by_role("button", name="Abort and fence").click()
    expect(page.locator(".toast.bad")).to_contain_text("has already ended")


def test_a_prepared_transaction_is_shown_as_such_and_ended(
    page: Page, secured: Console, new_topic: NewTopicNamed
) -> None:
    topic, name = new_topic(), f"prepared-{next(_numbers)}"
    prepare(secured, name, topic)
    secured.open(page, f"#/transactions?search={name}")
    row = page.locator("tr[data-row]")
    expect(row).to_contain_text("none (two-phase)")
    row.get_by_role("link").click()
    expect(page.get_by_text("another system decides its outcome (two-phase commit)")).to_be_visible()
    expect(page.get_by_role("link", name=f"{topic}-0")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("button", name="Abort transaction…").click()
    page.get_by_role("dialog").get_by_role("textbox").fill(name)
    page.get_by_role("dialog").get_by_role("button", name="Abort and fence").click()
    expect(page.get_by_text(f"The transaction of {name} was aborted.")).to_be_visible()
    expect(page.get_by_text("None.")).to_be_visible()


def test_a_hanging_transaction_is_found_and_aborted(page: Page, secured: Console, new_topic: NewTopicNamed) -> None:
    topic = new_topic()
    producer_id = hang(secured, topic)
    secured.open(page, "#/transactions?tab=hanging")
    page.get_by_label("Topic").fill(topic)
    page.get_by_role("button", name="Search").click()
    row = page.locator("tr[data-row]")
    expect(row).to_contain_text(topic)
    expect(row).to_contain_text(f"{producer_id} (epoch 0)")
    check_accessibility(page)
    row.get_by_role("button", name="Abort…").click()
    abort = page.get_by_role("dialog").get_by_role("button", name="Abort", exact=True)
    expect(abort).to_be_disabled()
    page.get_by_role("dialog").get_by_role("textbox").fill(topic)
    abort.click()
    expect(page.get_by_text("No hanging transactions.")).to_be_visible()
