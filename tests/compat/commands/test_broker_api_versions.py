"""kafka-broker-api-versions: the same text as Kafka's."""

from kaspar.client.admin.api_versions import ServedApi
from kaspar.tools.broker_api_versions import lines
from tests.compat.commands.catalog import BROKER_API_VERSIONS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.peers.kafka_tools import KafkaTools


def test_brokers_of_kaspar(places: Places) -> None:
    same_at_all(places[:2], lambda place: place.see(place.run(BROKER_API_VERSIONS, *place.servers).code))


def test_brokers_of_apache_kafka(places: Places, kafka_tools: KafkaTools) -> None:
    _, _, ours = places
    theirs = Place("Kafka's command on Apache Kafka", ours.broker, ours.folder, kafka_tools)
    same_at_all([theirs, ours], lambda place: place.see(place.run(BROKER_API_VERSIONS, *place.servers).code))


def test_no_broker_is_a_sentence(places: Places) -> None:
    def scenario(place: Place) -> None:
        timeouts = place.file("request.timeout.ms=300\ndefault.api.timeout.ms=300\n")
        address = "127.0.0.1:1,127.0.0.1:2"
        place.mask(r"HOST:PORT \(id: -\d", "NODE")
        done = place.run_unseen(BROKER_API_VERSIONS, "--bootstrap-server", address, "--command-config", timeouts)
        place.see([done.code, done.output])
        assert "Request METADATA failed on brokers [127.0.0.1:" in done.errors

    same_at_all(places[:2], scenario)


def test_apis_of_other_versions() -> None:
    found = lines(
        [ServedApi(0, 14, 15), ServedApi(1, 0, 3), ServedApi(3, 2, 99), ServedApi(52, 0, 1), ServedApi(999, 0, 2)]
    )
    assert found[:4] == [
        "Produce(0): 14 to 15 [unusable: node too new]",
        "Fetch(1): 0 to 3 [unusable: node too old]",
        "ListOffsets(2): UNSUPPORTED",
        "Metadata(3): 2 to 99 [usable: 13]",
    ]
    assert "Vote(52): 0 to 1 [usable: 1]" in found
    assert found[-1] == "UNKNOWN(999): 0 to 2"
