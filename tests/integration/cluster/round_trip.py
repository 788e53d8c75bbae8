"""A stock client on a machine: `python -m tests.integration.cluster.round_trip BOOTSTRAP TOPIC COUNT`.

Creates the topic with the brokers' defaults, writes so many records, reads them back as a group, and prints what it has
seen of the cluster.
"""

import json
import sys
import time

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 60.0


def main(bootstrap: str, topic: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 3)])[topic].result(SECONDS)

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(SECONDS) == 0

    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found: list[int] = []
    until = time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < until:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(int(message.value() or b""))
    consumer.close()

    described = admin.list_topics(timeout=SECONDS)
    report = {
        "brokers": {broker.id: f"{broker.host}:{broker.port}" for broker in described.brokers.values()},
        "replicas": [sorted(each.replicas) for each in described.topics[topic].partitions.values()],
        "read": sorted(found),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
