"""Reads commands, hands them to the client's library, writes responses. Imports only the requested library."""

import importlib
import itertools
import json
import sys
from typing import Any

from tests.compat.clients.api import ConsumerOptions
from tests.compat.clients.python.sessions import Library, PollingConsumer, TransactionalProducer, Transformer
from tests.compat.drivers.api import ClientError

_LIBRARIES = {
    "confluent-kafka": "confluent",
    "kafka-python": "kafka_python",
    "aiokafka": "aio",
    "kcat": "kcat",
}


class Calls:
    """One method for each command, with the command's words as its arguments."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._ids = itertools.count(1)
        self._consumers: dict[int, PollingConsumer] = {}
        self._producers: dict[int, TransactionalProducer] = {}
        self._transformers: dict[int, Transformer] = {}

    def consumer_open(self, **options: Any) -> int:
        number = next(self._ids)
        consumer = self._library.consumer(ConsumerOptions(**options))
        self._consumers[number] = PollingConsumer(consumer, self._library.error_name)
        return number

    def consumer_look(self, consumer: int, after: int) -> dict[str, Any]:
        return self._consumers[consumer].look(after)

    def consumer_commit(self, consumer: int, offsets: list[Any] | None, wait: bool) -> None:
        self._consumers[consumer].ask(lambda client: client.commit(offsets, wait=wait))

    def consumer_committed(self, consumer: int, places: list[Any]) -> list[Any]:
        return self._consumers[consumer].ask(lambda client: client.committed([(t, p) for t, p in places]))

    def consumer_seek(self, consumer: int, topic: str, partition: int, offset: int) -> None:
        self._consumers[consumer].ask(lambda client: client.seek(topic, partition, offset))

    def consumer_close(self, consumer: int) -> None:
        self._consumers.pop(consumer).close()

    def producer_open(self, transactional_id: str, transaction_timeout_ms: int) -> int:
        number = next(self._ids)
        self._producers[number] = self._library.producer(transactional_id, transaction_timeout_ms)
        return number

    def producer_begin(self, producer: int) -> None:
        self._producers[producer].begin()

    def producer_send(self, producer: int, topic: str, partition: int, values: list[str]) -> None:
        self._producers[producer].send(topic, partition, values)

    def producer_commit(self, producer: int) -> None:
        self._producers[producer].commit()

    def producer_abort(self, producer: int) -> None:
        self._producers[producer].abort()

    def producer_close(self, producer: int) -> None:
        self._producers.pop(producer).close()

    def transformer_open(self, **words: Any) -> int:
        number = next(self._ids)
        self._transformers[number] = Transformer(self._library, **words)
        return number

    def transformer_look(self, transformer: int) -> dict[str, Any]:
        return self._transformers[transformer].look()

    def transformer_close(self, transformer: int) -> None:
        self._transformers.pop(transformer).close()

    def group_list(self) -> list[Any]:
        return self._library.groups().states()

    def group_describe(self, group: str) -> dict[str, Any]:
        return self._library.groups().describe(group)

    def group_delete(self, group: str) -> None:
        self._library.groups().delete(group)

    def group_offsets(self, group: str) -> list[Any]:
        return self._library.groups().offsets(group)

    def group_set_offsets(self, group: str, offsets: list[Any]) -> None:
        self._library.groups().set_offsets(group, offsets)

    def group_delete_offsets(self, group: str, places: list[Any]) -> None:
        self._library.groups().delete_offsets(group, [(t, p) for t, p in places])

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        for producer in self._producers.values():
            producer.close()
        for transformer in self._transformers.values():
            transformer.close()


def respond(calls: Calls, library: Library, line: str) -> dict[str, Any]:
    command = json.loads(line)
    command.pop("timeout_ms")
    try:
        return {"result": getattr(calls, command.pop("call"))(**command)}
    except ClientError as error:
        return {"error": error.code, "message": str(error)}
    except Exception as error:  # whatever the client raises is its response
        return {"error": library.error_name(error), "message": repr(error)}


def main() -> None:
    name, bootstrap = sys.argv[1:]
    module = importlib.import_module(f"tests.compat.clients.python.{_LIBRARIES[name]}")
    library: Library = module.library(bootstrap)
    calls = Calls(library)
    for line in sys.stdin:
        print(json.dumps(respond(calls, library, line)), flush=True)
    calls.close()


main()
