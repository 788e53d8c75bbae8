"""The perf tools as a user of a secured listener, with and without permission."""

from kaspar.acls.acl import ResourceType
from tests.compat.commands.catalog import CONSUMER_PERF_TEST, E2E_LATENCY, PRODUCER_PERF_TEST
from tests.compat.commands.places import Place, Places
from tests.compat.commands.secured import credentials, denied
from tests.compat.commands.test_producer_perf_test import create_topic

PRODUCE = ("--num-records", "100", "--record-size", "10", "--throughput", "-1")
CONSUME = ("--num-records", "100", "--hide-header", "--timeout", "20000")
LATENCY = ("--num-records", "2", "--record-size", "10", "--producer-acks", "all")


def _topic(place: Place) -> tuple[str, str]:
    topic = place.name_of("guarded")
    create_topic(place, topic)
    return "--topic", topic


def test_user_logs_in(places: Places) -> None:
    for place in places[1:]:
        alice, topic = credentials(place, "alice"), _topic(place)
        produced = place.run_unseen(PRODUCER_PERF_TEST, *alice, *topic, *PRODUCE)
        assert produced.output.startswith("100 records sent, ")
        consumed = place.run_unseen(CONSUMER_PERF_TEST, *alice, *topic, *CONSUME)
        assert ", 100, " in consumed.output
        latency = place.run_unseen(E2E_LATENCY, *alice, *topic, *LATENCY)
        assert "Avg latency: " in latency.output
        assert (produced.code, consumed.code, latency.code) == (0, 0, 0)


def test_user_without_permission(places: Places) -> None:
    for place in places[1:]:
        eve, topic = credentials(place, "eve"), _topic(place)
        with denied(place, "eve", ResourceType.TOPIC, topic[1]):
            for command, options in ((PRODUCER_PERF_TEST, PRODUCE), (E2E_LATENCY, LATENCY)):
                done = place.run_unseen(command, *eve, *topic, *options)
                assert (done.code, done.output) == (1, "")
                assert done.errors == f"Not authorized to access topics: [{topic[1]}]\n"
            done = place.run_unseen(CONSUMER_PERF_TEST, *eve, *topic, *CONSUME)
            assert (done.code, done.errors) == (1, f"Not authorized to access topics: [{topic[1]}]\n")
        group = place.name_of("readers")
        with denied(place, "eve", ResourceType.GROUP, group):
            done = place.run_unseen(CONSUMER_PERF_TEST, *eve, *topic, *CONSUME, "--group", group)
            assert (done.code, done.output) == (1, "")
            assert done.errors == f"Not authorized to access group: {group}\n"


def test_wrong_password(places: Places) -> None:
    for place in places[1:]:
        mallory, topic = credentials(place, "mallory", password="guessed"), _topic(place)
        for command, options in ((PRODUCER_PERF_TEST, PRODUCE), (CONSUMER_PERF_TEST, CONSUME), (E2E_LATENCY, LATENCY)):
            done = place.run_unseen(command, *mallory, *topic, *options)
            assert done.code == 1
            assert "uthentication failed" in done.errors
