"""A broker that dies and returns while a group and a transaction are looked at, and while a change is under way."""

import json
import os
import signal
from pathlib import Path

from playwright.sync_api import expect

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import raise_first
from tests.browser.administration.conftest import commit
from tests.browser.administration.test_transactions import begin
from tests.browser.conftest import NewPage, Problems
from tests.browser.console import running_console
from tests.peers.observed import wait_until


def test_views_go_on_and_a_change_under_way_is_unknown(new_page: NewPage, problems: Problems, tmp_path: Path) -> None:
    problems.expected |= {502, 503}
    problems.loses_connection = True  # the console ends before the pages do
    audit = tmp_path / "audit.log"
    settings = {"client.default.api.timeout.ms": "2000", "kaspar.console.audit.file": str(audit)}
    with running_console(settings=settings) as console:
        with console.admin() as admin:
            raise_first(create_topics(admin, [NewTopic("orders", 1, 1)]).values())
        commit(console, "billing", {TopicPartition("orders", 0): 0})
        producer = begin(console, "pay", "orders")
        group, transaction, topic = new_page(), new_page(), new_page()
        console.open(group, "#/groups/billing")
        committed = group.get_by_role("table").locator("tr[data-row]")
        expect(committed).to_contain_text("orders")
        console.open(transaction, "#/transactions/pay")
        expect(transaction.get_by_text("Ongoing")).to_be_visible()
        console.open(topic, "#/topics/orders")
        topic.get_by_role("button", name="Add partitions").click()
        dialog = topic.get_by_role("dialog")
        dialog.get_by_label("Total partitions").fill("3")

        os.kill(console.broker.pid, signal.SIGSTOP)
        with topic.expect_request("**/api/topics/orders/partitions"):
            dialog.get_by_role("button", name="Add partitions").click()
        console.broker.kill()
        expect(dialog.get_by_role("alert")).to_contain_text("The change may have been made all the same.")
        wait_until(audit.exists, "the change is in the audit log")
        (line,) = map(json.loads, audit.read_text().splitlines())
        assert (line["action"], line["resource"], line["outcome"]) == ("add partitions", "topic orders", "unknown")
        for page in (group, transaction):
            expect(page.locator("main .notice.bad")).to_be_visible()
        expect(committed).to_contain_text("orders")  # what was seen stays beside the problem

        console.broker.start()
        for page in (group, transaction):
            expect(page.locator("main .notice.bad")).to_have_count(0, timeout=30_000)
        expect(committed).to_contain_text("orders")
        expect(transaction.get_by_text("Ongoing")).to_be_visible()
        dialog.get_by_role("button", name="Add partitions").click()
        expect(topic.get_by_role("dialog")).to_have_count(0)
        expect(topic.locator("tbody tr[data-row]")).to_have_count(3)
        del producer
