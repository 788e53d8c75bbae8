"""Kafka's own kafka-transactions, by its class: list, describe, find what hangs, end by force."""

from tests.compat.clients.registry import CONFLUENT
from tests.compat.clients.stage import Crew, Stage
from tests.compat.clients.words import wait_for_values
from tests.compat.scenario import refusal
from tests.compat.transactions.test_transactions import FENCED
from tests.peers.brokers import Brokers
from tests.peers.kafka import run_tool

TOOL = "org.apache.kafka.tools.TransactionsCommand"


def tool(broker: Brokers, *arguments: str) -> list[dict[str, str]]:
    """The lines of the table that the tool printed, by the names of its columns."""
    done = run_tool(TOOL, "--bootstrap-server", broker.bootstrap, *arguments)
    head, *lines = ([word.strip() for word in line.split("\t")] for line in done.stdout.splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_the_tool_shows_an_open_transaction_and_ends_it(broker: Brokers, crew: Crew) -> None:
    with Stage(crew, CONFLUENT) as stage:
        topic, transactional_id = stage.new_topic(partitions=2), stage.new_name("id")
        stage.write(topic, "plain")
        producer = stage.producer(transactional_id, timeout_ms=50_000)
        producer.begin()
        producer.send(topic, "open")

        (listed,) = (line for line in tool(broker, "list") if line["TransactionalId"] == transactional_id)
        assert listed["TransactionState"] == "Ongoing"
        (described,) = tool(broker, "describe", "--transactional-id", transactional_id)
        assert (described["TransactionState"], described["TransactionTimeoutMs"]) == ("Ongoing", "50000")
        assert described["TopicPartitions"] == f"{topic}-0"
        assert described["ProducerId"] == listed["ProducerId"]
        where = ("--topic", topic, "--partition", "0")
        (writing,) = tool(broker, "describe-producers", *where)
        assert (writing["ProducerId"], writing["CurrentTransactionStartOffset"]) == (listed["ProducerId"], "1")
        assert tool(broker, "describe-producers", "--topic", topic, "--partition", "1") == []
        assert tool(broker, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0") == []

        run_tool(
            *(TOOL, "--bootstrap-server", broker.bootstrap),
            *("forceTerminateTransaction", "--transactionalId", transactional_id),
        )
        (ended,) = tool(broker, "describe-producers", *where)
        assert ended["CurrentTransactionStartOffset"] == "None"
        (described,) = tool(broker, "describe", "--transactional-id", transactional_id)
        assert described["TransactionState"] == "Empty"
        assert refusal(producer.commit) in FENCED
        stage.write(topic, "after")
        member = stage.consumer(stage.new_name("group"), topic, isolation="read_committed")
        wait_for_values([member], ["plain", "after"])
