"""kafka-e2e-latency: every record comes back, and the summary is Kafka's."""

import pytest

from tests.compat.commands.catalog import E2E_LATENCY
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.test_producer_perf_test import create_topic


def _mask_measures(place: Place) -> None:
    place.mask(r"^(\d+)\t[\d.E-]+$", r"\1\tN")
    place.mask(r"(?<= latency: )[\d.]+", "N")
    place.mask(r"(?<== )\d+(?=,|$)", "N")


def test_records_come_back(places: Places) -> None:
    def scenario(place: Place) -> None:
        _mask_measures(place)
        topic = place.name_of("there-and-back")
        usual = ("--topic", topic, "--producer-acks", "all", "--record-size", "20")
        place.run(E2E_LATENCY, *place.servers, *usual, "--num-records", "20")
        headers = ("--num-headers", "2", "--record-header-key-size", "3", "--record-header-size", "-1")
        place.run(E2E_LATENCY, *place.servers, *usual, "--num-records", "3", "--record-key-size", "4", *headers)
        place.run(E2E_LATENCY, place.broker.bootstrap, topic, "3", "1", "0")

    same_at_all(places, scenario)


def test_several_partitions(places: Places) -> None:
    def scenario(place: Place) -> None:
        _mask_measures(place)
        topic = place.name_of("four")
        create_topic(place, topic, partitions=4)
        usual = ("--topic", topic, "--producer-acks", "1", "--record-size", "20", "--num-records", "10")
        place.run(E2E_LATENCY, *place.servers, *usual)

    same_at_all(places, scenario)


@pytest.mark.parametrize(
    "words",
    [
        ("--topic", "t"),
        ("--producer-acks", "0"),
        ("--num-records", "0"),
        ("--record-size", "-1"),
        ("--record-header-size", "-2"),
        ("--num-headers", "-1"),
        ("--record-key-size", "-1"),
    ],
    ids=" ".join,
)
def test_wrong_options(places: Places, words: tuple[str, ...]) -> None:
    given = {"--topic": "t", "--num-records": "1", "--producer-acks": "1", "--record-size": "1"}
    given = given | {words[0]: words[1]} if words[0] != "--topic" else {"--topic": "t"}

    def scenario(place: Place) -> None:
        place.run(E2E_LATENCY, *place.servers, *(word for pair in given.items() for word in pair))

    same_at_all(places[:2], scenario)
