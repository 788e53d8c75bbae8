"""Which requests a broker has served, by API and version: from our metrics page, from Kafka's request log."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.peers.kafka import LIGHT_JVM, ApacheKafka
from tests.peers.observed import ObservedBroker
from tests.peers.process import BrokerProcess

Served = Counter[tuple[str, int]]  # by the API's name in small letters, and the version

_METRIC = re.compile(r'kafka_network_requestmetrics_requests_total\{request="(\w+)",version="(\d+)"\}')
_LOGGED = re.compile(r'"requestApiVersion":(\d+)[^}]*"requestApiKeyName":"(\w+)"')
_REQUEST_LOG = "-Dorg.slf4j.simpleLogger.log.kafka.request.logger=debug"


def broker_that_counts(against: str, folder: Path, overrides: Mapping[str, str]) -> BrokerProcess:
    if against == "kafka":
        return ApacheKafka(folder, overrides=overrides, jvm_flags=[*LIGHT_JVM, _REQUEST_LOG])
    return ObservedBroker(folder, overrides=overrides)


def served(broker: BrokerProcess) -> Served:
    if isinstance(broker, ObservedBroker):
        samples = [(_METRIC.match(name), count) for name, count in broker.metrics().items()]
        return Counter({(match[1].lower(), int(match[2])): int(count) for match, count in samples if match})
    return Counter(
        (name.replace("_", "").lower(), int(version)) for version, name in _LOGGED.findall(broker.log_text())
    )


def versions_of(requests: Served, api: str) -> set[int]:
    return {version for (name, version), count in requests.items() if name == api.lower() and count > 0}
