"""A little of everything that the console shows: topics with records, groups that keep up and groups that do not."""

import json

import httpx
from confluent_kafka import Consumer, Producer

from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin, raise_first

TOPICS = ("clicks", "orders", "orders.dlq", "payments", "shipments", "users")
DEAD_LETTERS = "orders.dlq"
_RECORDS = 300


def fill(bootstrap_servers: str) -> None:
    with Admin(bootstrap_servers) as admin:
        raise_first(create_topics(admin, [NewTopic(name, 3, 1) for name in TOPICS]).values())
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5})
    for name in TOPICS:
        for number in range(_RECORDS):
            value = json.dumps({"id": number, "kind": name, "amount": number * 7 % 100})
            headers = _dead_letter(number) if name == DEAD_LETTERS else None
            producer.produce(name, value, f"{name}-{number % 20}", headers=headers)
    producer.flush(30)
    _commit(bootstrap_servers, "billing", "orders", _RECORDS)
    _commit(bootstrap_servers, "reporting", "clicks", 40)
    _transaction(bootstrap_servers)


def _transaction(bootstrap_servers: str) -> None:
    """One that stays open."""
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "transactional.id": "checkout", "transaction.timeout.ms": 900_000}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce("payments", json.dumps({"id": partition}), partition=partition)
    producer.flush(30)


def register(registry_url: str) -> None:
    """Two versions of a schema."""
    fields: list[dict[str, str]] = [{"name": "id", "type": "long"}, {"name": "kind", "type": "string"}]
    for more in ([], [{"name": "amount", "type": "long", "default": 0}]):
        schema = json.dumps({"type": "record", "name": "Order", "fields": [*fields, *more]})
        response = httpx.post(f"{registry_url}/subjects/orders-value/versions", json={"schema": schema})
        response.raise_for_status()


def _dead_letter(number: int) -> list[tuple[str, str | bytes | None]]:
    return [
        ("__connect.errors.topic", "orders"),
        ("__connect.errors.partition", "1"),
        ("__connect.errors.offset", str(number)),
        ("__connect.errors.exception.message", "it is no JSON: unexpected end of the text"),
    ]


def _commit(bootstrap_servers: str, group: str, topic: str, records: int) -> None:
    """Read so many records and commit that."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    read = 0
    while read < records:
        read += len(consumer.consume(records - read, 1.0))
    consumer.commit(asynchronous=False)
    consumer.close()
