"""Where a group begins that has committed nothing: auto.offset.reset."""

import itertools
import time

from tests.compat.clients.api import Feature, Protocol
from tests.compat.clients.stage import Stage, for_every_client, protocols
from tests.compat.clients.words import healthy, wait_for_values, wait_until_shared
from tests.compat.scenario import eventually

HOUR_MS = 3_600_000


@for_every_client(variants=protocols)
def test_earliest_is_the_first_record(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic()
    stage.write(topic, "old", "new")
    wait_for_values([stage.consumer(stage.new_name("group"), topic, protocol=protocol)], ["old", "new"])


@for_every_client(variants=protocols)
def test_latest_is_what_comes(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic()
    stage.write(topic, "old", "older")
    member = stage.consumer(stage.new_name("group"), topic, protocol=protocol, reset="latest")
    wait_until_shared([member], {(topic, 0)})
    numbers = itertools.count()

    def comes() -> bool:
        stage.write(topic, f"new-{next(numbers)}")  # when the member stands at the end cannot be seen from outside
        return bool(healthy(member).records)

    eventually(comes, "something new")
    first = member.look().records[0]
    assert first.offset >= 2
    assert first.value == f"new-{first.offset - 2}"


@for_every_client(Feature.RESET_NONE, variants=protocols)
def test_none_is_an_error(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic()
    stage.write(topic, "old")
    member = stage.consumer(stage.new_name("group"), topic, protocol=protocol, reset="none")
    eventually(lambda: member.look().error is not None, "the member gives up")
    assert (member.look().error, member.look().values) == ("NO_OFFSET", [])


@for_every_client(Feature.RESET_BY_DURATION, variants=protocols)
def test_by_duration_is_the_first_record_of_that_age(stage: Stage, protocol: Protocol) -> None:
    topic = stage.new_topic()
    now = int(time.time() * 1000)
    for age, value in ((3, "three hours ago"), (1, "an hour ago")):
        stage.write(topic, value, timestamp_ms=now - age * HOUR_MS)
    stage.write(topic, "now")
    options = {"protocol": protocol, "reset": "by_duration:PT2H"}
    wait_for_values([stage.consumer(stage.new_name("group"), topic, **options)], ["an hour ago", "now"])
