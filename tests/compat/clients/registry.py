"""Every client, by name, and what each cannot do."""

import sys
from collections.abc import Callable

from tests.compat.clients.api import ClientKind, Feature
from tests.compat.drivers.foreign import franz_command, java_command, kafkajs_command
from tests.peers.kcat import kcat_path

_NO_ADMIN = "it has no admin commands"
_KAFKAJS_FETCH = "KafkaJS has no such policy"


def _python(name: str) -> Callable[[str], list[str]]:
    return lambda bootstrap: [sys.executable, "-m", "tests.compat.clients.python", name, bootstrap]


def _kcat(bootstrap: str) -> list[str]:
    kcat_path()  # so that it is this process that skips the test where there is none
    return _python("kcat")(bootstrap)


CONFLUENT = ClientKind(
    "confluent-kafka",
    _python("confluent-kafka"),
    assignors=("range", "roundrobin", "cooperative-sticky"),
    cannot={
        Feature.UNCHECKED_PATTERN: "it compiles the pattern itself, too",
        Feature.RESET_BY_DURATION: "librdkafka has no such policy",
        Feature.DELETE_OFFSETS: "its admin client has no such call",
        Feature.TRANSFORM_AFTER_RESTART: "librdkafka waits for the group's coordinator that went away (2.16)",
    },
)
KAFKA_PYTHON = ClientKind(
    "kafka-python",
    _python("kafka-python"),
    assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
    cannot={
        Feature.FENCED_INSTANCE: "its heartbeats end without a word",
        Feature.NEW_PATTERN_TOPICS: "it joins again for other reasons only",
        Feature.CONSUMER_PROTOCOL: "it knows the classic protocol only",
        Feature.RESET_BY_DURATION: "it has no such policy",
    },
)
AIOKAFKA = ClientKind(
    "aiokafka",
    _python("aiokafka"),
    assignors=("range", "roundrobin", "sticky"),
    cannot={
        Feature.ASYNC_COMMIT: "its commit is awaited",
        Feature.FENCED_INSTANCE: "it does not look for that error",
        Feature.CONSUMER_PROTOCOL: "it knows the classic protocol only",
        Feature.RESET_BY_DURATION: "it has no such policy",
        Feature.DELETE_GROUPS: "its admin client has no such call",
        Feature.SET_OFFSETS: "its admin client has no such call",
        Feature.DELETE_OFFSETS: "its admin client has no such call",
    },
)
KCAT = ClientKind(
    "kcat",
    _kcat,
    assignors=("range", "roundrobin", "cooperative-sticky"),
    cannot={
        Feature.COMMIT: "it commits by itself only",
        Feature.COMMIT_METADATA: "it commits by itself only",
        Feature.ASYNC_COMMIT: "it commits by itself only",
        Feature.SEEK: "it takes no commands while it runs",
        Feature.CONSUMER_PROTOCOL: "Debian's librdkafka is older",
        Feature.RESET_BY_DURATION: "librdkafka has no such policy",
        Feature.LIST_GROUPS: _NO_ADMIN,
        Feature.DELETE_GROUPS: _NO_ADMIN,
        Feature.SET_OFFSETS: _NO_ADMIN,
        Feature.DELETE_OFFSETS: _NO_ADMIN,
        Feature.TRANSACTIONS: "it commits when its input ends, which no scenario can see",
        Feature.BROKER_RESTART: "it ends when no broker is left",
    },
)
JAVA = ClientKind("java", java_command, assignors=("range", "roundrobin", "sticky", "cooperative-sticky"), cannot={})
FRANZ_GO = ClientKind(
    "franz-go",
    franz_command,
    assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
    cannot={
        Feature.RELEASED_INSTANCE: "when it leaves it does not name its instance, so the broker refuses (1.22.2)",
        Feature.UNCHECKED_PATTERN: "it compiles the pattern itself, too",
        Feature.RESET_NONE: "where nothing is committed it starts all the same",
        Feature.RESET_BY_DURATION: "it has no such policy",
    },
)
KAFKAJS = ClientKind(
    "kafkajs",
    kafkajs_command,
    assignors=("RoundRobinAssigner",),
    cannot={
        Feature.ASYNC_COMMIT: "its commit is awaited",
        Feature.RESET_NONE: _KAFKAJS_FETCH,
        Feature.RESET_BY_DURATION: _KAFKAJS_FETCH,
        Feature.STATIC_MEMBER: "it sends no instance id",
        Feature.FENCED_INSTANCE: "it sends no instance id",
        Feature.NEW_PATTERN_TOPICS: "it matches a pattern once",
        Feature.CONSUMER_PROTOCOL: "it knows the classic protocol only",
        Feature.COMPACTED_TRANSACTIONS: "it finds no record there, at either broker (2.2.4)",
        Feature.DELETE_OFFSETS: "its admin client has no such call",
    },
)

CLIENTS = {kind.name: kind for kind in (CONFLUENT, KAFKA_PYTHON, AIOKAFKA, KCAT, JAVA, FRANZ_GO, KAFKAJS)}
