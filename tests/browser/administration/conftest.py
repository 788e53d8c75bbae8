"""A console with a broker that has an authorizer, and with a folder of pipelines. The browser may do everything."""

import itertools
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.group_offsets import alter_group_offsets, list_group_offsets
from kaspar.client.admin.session import accepted
from kaspar.pipelines.folder import Folder
from kaspar.records.builder import build_batch
from kaspar.records.record import Record
from tests.browser.console import Console, running_console
from tests.peers.observed import wait_until
from tests.peers.sasl_ssl import AUTHORIZER

expect.set_options(timeout=15_000)  # lists are read again every few seconds

RECORDS = 10
TIME_MS = 1_790_000_000_000
HOSTILE = "a/b <img src=x onerror=window.hacked=1>\u202e%2F"
"""A name that groups and transactional ids may have."""

NewTopicNamed = Callable[..., str]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    made = Folder(tmp_path_factory.mktemp("pipelines"))
    made.make()
    return made


@pytest.fixture(scope="session")
def secured(folder: Folder) -> Iterator[Console]:
    overrides = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
        "transaction.partition.verification.enable": "false",  # a transaction can hang, as on brokers before Kafka 3.6
        "transaction.two.phase.commit.enable": "true",
    }
    with running_console(
        settings={"kaspar.console.pipelines.folder": str(folder.path)}, overrides=overrides
    ) as console:
        yield console


@pytest.fixture(scope="session")
def new_topic(secured: Console) -> NewTopicNamed:
    """Topics with ten records in each partition."""
    numbers = itertools.count()

    def create(partitions: int = 1) -> str:
        name = f"orders-{next(numbers)}"
        with secured.admin() as admin:
            create_topics(admin, [NewTopic(name, partitions, 1)])
            for partition in range(partitions):
                records = [Record(TIME_MS + number, None, b"value") for number in range(RECORDS)]
                admin.client.produce(name, partition, bytes(build_batch(records)))
        return name

    return create


def commit(console: Console, group: str, offsets: dict[TopicPartition, int]) -> None:
    with console.admin() as admin:
        assert set(alter_group_offsets(admin, group, offsets).values()) == {None}


def committed(console: Console, group: str) -> dict[TopicPartition, int]:
    with console.admin() as admin:
        found = accepted(list_group_offsets(admin, [group])[group])
    return {where: each.offset for where, each in found.items()}


def wait_for_lag(console: Console, group: str, lag: int) -> None:
    """Until the monitor has seen it: a page that is opened then need not wait to read it again."""

    def is_seen() -> bool:
        rows = httpx.get(f"{console.url}/api/groups", params={"search": group}).json()["rows"]
        return any(row["total_lag"] == lag for row in rows)

    wait_until(is_seen, f"{group} has a lag of {lag}")


def is_harmless(page: Page) -> bool:
    """Whether no text of others has become markup."""
    return page.evaluate("window.hacked === undefined") and page.locator("main img").count() == 0
