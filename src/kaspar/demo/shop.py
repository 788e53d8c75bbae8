"""Traffic of the demo besides clicks and trades, so that every view of the console has something to show.

- orders: a transaction every second or two; some are aborted
- payments: records in Avro, sent through the REST proxy, which registers their schema
- recommendations: a consumer group that reads page views and falls behind periodically

Each runs in its own thread.
"""

import json
import random
import threading
import time
import urllib.request
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer

from kaspar.demo.producing import QUIET

ORDERS: Final = "orders"
PAYMENTS: Final = "payments"
GROUP: Final = "recommendations"

_ITEMS: Final = ("surfboard", "chess set", "spade", "bicycle", "bread tin", "telescope")
_USERS: Final = 200
_SECONDS_BETWEEN_ORDERS: Final = 1.5
_ABORTED: Final = 0.15
_PAYMENT_SCHEMA: Final = {
    "type": "record",
    "name": "Payment",
    "namespace": "demo",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "method", "type": {"type": "enum", "name": "Method", "symbols": ["CARD", "INVOICE", "VOUCHER"]}},
    ],
}
_AVRO: Final = "application/vnd.kafka.avro.v2+json"
_REQUEST_S: Final = 30.0
_READS_S: Final = 20.0
_RESTS_S: Final = 15.0


def take_orders(bootstrap: str, stop: threading.Event) -> None:
    rng = random.Random(1)
    producer = Producer({**QUIET, "bootstrap.servers": bootstrap, "transactional.id": "demo-orders"})
    producer.init_transactions(30)
    number = 0
    while not stop.wait(rng.expovariate(1 / _SECONDS_BETWEEN_ORDERS)):
        producer.begin_transaction()
        user = f"user-{rng.randrange(_USERS)}"
        for _ in range(rng.randint(1, 5)):
            number += 1
            order = {"order": number, "item": rng.choice(_ITEMS), "quantity": rng.randint(1, 3)}
            producer.produce(ORDERS, json.dumps(order), user)
        if rng.random() < _ABORTED:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def take_payments(rest_url: str, stop: threading.Event) -> None:
    rng = random.Random(2)
    schema: dict[str, Any] = {"value_schema": json.dumps(_PAYMENT_SCHEMA)}
    while not stop.wait(1.0):
        payments = [
            {"user": f"user-{rng.randrange(_USERS)}", "cents": rng.randint(500, 90_000), "method": method}
            for method in rng.choices(("CARD", "INVOICE", "VOUCHER"), (6, 3, 1), k=rng.randint(1, 8))
        ]
        body = {**schema, "records": [{"value": payment} for payment in payments]}
        response = _post(f"{rest_url}/topics/{PAYMENTS}", body)
        schema = {"value_schema_id": response["value_schema_id"]}


def _post(url: str, body: object) -> Any:
    headers = {"content-type": _AVRO, "accept": "application/vnd.kafka.v2+json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=_REQUEST_S) as response:
        return json.load(response)


def recommend(bootstrap: str, stop: threading.Event) -> None:
    """Consume for a while, then pause for a while, so that the group's lag grows and shrinks."""
    consumer = Consumer({**QUIET, "bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe(["page-views"])
    while not stop.is_set():
        rests_at = time.monotonic() + _READS_S
        while time.monotonic() < rests_at and not stop.is_set():
            for message in consumer.consume(1000, timeout=0.2):
                if (problem := message.error()) is not None:
                    raise KafkaException(problem)
        stop.wait(_RESTS_S)
    consumer.close()
