"""All that is committed in a topic, up to its end now."""

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition


def read_committed(bootstrap: str, topic: str, partitions: int) -> list[tuple[str, str]]:
    """Keys and values, in the order of each partition; those of an open transaction and what follows are left out."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # how long a broker holds back the response that shows the end
            "log_level": 2,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        found: list[tuple[str, str]] = []
        open_partitions = set(range(partitions))
        while open_partitions:
            message = consumer.poll(10.0)
            assert message is not None, f"{topic} has no end"
            error = message.error()
            if error is None:
                found.append((_text(message.key()), _text(message.value())))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error.str()
                open_partitions.discard(message.partition() or 0)
        return found
    finally:
        consumer.close()


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
