"""The same requests move the same counters of both brokers, by the same amounts.

Names are those of Prometheus' JMX exporter on both sides. What a scenario asks besides its own API, to have its topics
made, is not compared: how often it has to ask until they are there is up to the broker.
"""

import re
from collections.abc import Callable, Iterator

import pytest

from kaspar.metadata.topic_names import is_internal
from kaspar.network.request_metrics import MAX_VERSIONS
from scripts.kafka_metrics import families_by_mbean, normalised, why_absent
from tests.compat.responses.api import Api
from tests.compat.responses.conftest import Pair
from tests.compat.responses.differences import KNOWN
from tests.compat.responses.scenario import Eventually, Scenario
from tests.compat.responses.scenarios import SCENARIOS
from tests.peers.jmx import JmxCounts, metric_names
from tests.peers.observed import ObservedBroker, wait_until

Counts = dict[str, int]

OF_EACH_API = 5
"""Scenarios; of Produce, whose requests move counters of topics, all."""

FORWARDED = {
    *("CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs", "UpdateFeatures"),
    *("CreateAcls", "DeleteAcls", "ElectLeaders", "AlterPartitionReassignments", "ListPartitionReassignments"),
    *("AlterClientQuotas", "AlterUserScramCredentials", "DescribeQuorum", "UnregisterBroker"),
    *("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"),
}
"""Kafka's broker hands these, where it does not refuse them itself, to its controller, which is in the same process and
counts them again.
"""

SENT_BY_BROKERS = {"WriteTxnMarkers", "AddPartitionsToTxn"}
"""Kafka's coordinators and leaders send these to each other, also within one broker, when a transaction of an earlier
test ends: there may be more of them.
"""

TOPIC_COUNTERS = {
    *("messagesin", "bytesin", "bytesout", "bytesrejected"),
    *("totalproducerequests", "totalfetchrequests", "failedproducerequests", "failedfetchrequests"),
    *("producemessageconversions", "nokeycompactedtopicrecords"),
    *("invalidmagicnumberrecords", "invalidmessagecrcrecords", "invalidoffsetorsequencerecords"),
}

_TOPIC = re.compile(r'kafka_server_brokertopicmetrics_(\w+)_total(?:\{topic="(__\w+)"\})?$')
_ERROR = re.compile(r'kafka_network_requestmetrics_errors_total\{request="(\w+)",error="(\w+)"\}')
_REQUEST = re.compile(r'kafka_network_requestmetrics_requests_total\{request="(\w+)",version="(\w+)"\}')


@pytest.fixture(scope="module")
def jmx(pair: Pair) -> Iterator[JmxCounts]:
    if pair.same:
        pytest.skip("Kaspar's metrics are compared with Apache Kafka's")
    with JmxCounts(pair.jmx_port) as counts:
        yield counts


def test_every_metric_of_kafka_is_on_the_page_of_kafkas_metrics(pair: Pair) -> None:
    if pair.same:
        pytest.skip("Kaspar's metrics are compared with Apache Kafka's")
    here = families_by_mbean()
    for mbean in map(normalised, metric_names(pair.jmx_port)):
        assert (mbean in here) != (why_absent(mbean) is not None), mbean


@pytest.mark.parametrize("api", Api, ids=lambda api: api.title)
def test_requests_move_the_same_counters(api: Api, pair: Pair, jmx: JmxCounts) -> None:
    scenarios = [scenario for scenario in SCENARIOS if scenario.api is api and _is_comparable(scenario)]
    if api is not Api.PRODUCE:
        scenarios = scenarios[:OF_EACH_API]
    broker = pair.subject.peer
    assert isinstance(broker, ObservedBroker)
    kafka_before, ours_before = _steady(lambda: _of_kafka(jmx, api)), _steady(lambda: _of_ours(broker, api))
    for scenario in scenarios:
        pair.play(scenario, _version(scenario), again=True)

    def differences() -> Counts:
        ours, kafkas = _moved(ours_before, _of_ours(broker, api)), _moved(kafka_before, _of_kafka(jmx, api))
        counted_again = {name: 2 * count for name, count in ours.items()} if api.title in FORWARDED else ours
        at_most = kafkas if api.title in SENT_BY_BROKERS else counted_again
        return {
            name: kafkas.get(name, 0) - ours.get(name, 0)
            for name in ours.keys() | kafkas.keys()
            if not ours.get(name, 0) <= kafkas.get(name, 0) <= at_most.get(name, 0)
        }

    # What has no response, and what closes a connection, is counted a moment later.
    settled = differences()
    if settled:
        wait_until(lambda: not differences(), f"counters differ (how much more Kafka counts): {settled}", seconds=5)


def _version(scenario: Scenario) -> int:
    return scenario.tested_versions()[-1]


def _is_comparable(scenario: Scenario) -> bool:
    """Both respond alike, and how often they are asked does not depend on how fast they are. ListOffsets is what all
    scenarios ask until their topics are there.
    """
    same_responses = not any(known.concerns(scenario, _version(scenario)) for known in KNOWN)
    polls = any(
        isinstance(step, Eventually) and step.api is scenario.api for step in (*scenario.given, *scenario.steps)
    )
    return same_responses and not polls and scenario.api is not Api.LIST_OFFSETS


def _moved(before: Counts, after: Counts) -> Counts:
    """By how much each counter has moved that has."""
    return {
        name: moved for name in before.keys() | after.keys() if (moved := after.get(name, 0) - before.get(name, 0)) != 0
    }


def _of_kafka(jmx: JmxCounts, api: Api) -> Counts:
    requests = "kafka.network:type=RequestMetrics,name={},request={},*"
    counts = {
        **jmx.read(requests.format("ErrorsPerSec", api.title)),
        **jmx.read(requests.format("RequestsPerSec", api.title)),
    }
    found: Counts = {}
    for mbean, count in counts.items():
        keys = _keys(mbean)
        name = keys.get("error") or f"version {_known(int(keys['version']))}"
        found[name] = found.get(name, 0) + count
    if api is Api.PRODUCE:
        for mbean, count in jmx.read("kafka.server:type=BrokerTopicMetrics,*").items():
            keys = _keys(mbean)
            name = keys["name"].removesuffix("PerSec").lower()
            if name in TOPIC_COUNTERS:
                _count(found, name, keys.get("topic"), count)
    return found


def _steady(read: Callable[[], Counts]) -> Counts:
    """The same twice: coordinators write in the background, and a sum may be read before the parts are, or after."""
    before, now = read(), read()
    while now != before:
        before, now = now, read()
    return now


def _count(found: Counts, name: str, topic: str | None, count: int) -> None:
    """Of all topics without the internal ones, to which coordinators write whenever they have to."""
    if topic is None:
        found[name] = found.get(name, 0) + count
    elif is_internal(topic):
        found[name] = found.get(name, 0) - count


def _keys(mbean: str) -> dict[str, str]:
    return dict(key.split("=") for key in mbean.partition(":")[2].split(","))


def _known(version: int) -> int:
    """As Kaspar counts those of ApiVersions that no client speaks."""
    return version if 0 <= version < MAX_VERSIONS else 0


def _of_ours(broker: ObservedBroker, api: Api) -> Counts:
    found: Counts = {}
    for sample, value in broker.metrics().items():
        if (error := _ERROR.match(sample)) and error[1] == api.title:
            found[error[2]] = int(value)
        elif (request := _REQUEST.match(sample)) and request[1] == api.title:
            found[f"version {request[2]}"] = int(value)
        elif api is Api.PRODUCE and (topic := _TOPIC.match(sample)):
            _count(found, topic[1], topic[2], int(value))
    return found
