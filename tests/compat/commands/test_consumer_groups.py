"""kafka-consumer-groups: what it prints and does, beside Kafka's."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.admin.groups import describe_consumer_groups
from kaspar.client.admin.session import Admin
from kaspar.client.offsets import commit_offsets
from kaspar.records import Record, build_batch
from tests.compat.commands.catalog import CONSUMER_GROUPS
from tests.compat.commands.complaints import first_and_long
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.tools.comparing import sentences
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

FIRST_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
ADDRESS = ("--bootstrap-server", "127.0.0.1:1")


def _run(place: Place, *arguments: str | Path, in_order: bool = True) -> None:
    place.mask(r"(java\.[\w.]+Exception: )+", "")
    place.mask(r"^\[.*?\] ERROR .*\n?", "")  # what Kafka's client logs
    place.mask(r"^WARN New offset .*\n?", "")  # which Kafka's command logs, at a level that tests do not show
    place.run(CONSUMER_GROUPS, *place.servers, *arguments, in_order=in_order)


def _own_lines(place: Place, *arguments: str) -> None:
    """For commands about all groups of the broker: what is printed of those of this place."""
    done = place.run_unseen(CONSUMER_GROUPS, *place.servers, *arguments)
    shown = [line.split() for line in done.output.splitlines()]
    wanted = {"GROUP", *place.own_names}
    place.see([done.code, *sorted({tuple(words): words for words in shown if words and words[0] in wanted}.values())])


def _new_topic(place: Place, what: str, *, partitions: int = 1, records: int = 0) -> str:
    """With so many records in each partition, a second apart."""
    topic = place.name_of(what)
    with RawClient(place.broker.port) as client:
        assert client.create_topic(topic, partitions=partitions) == 0
    wait_until(lambda: place.broker.lead(topic, range(partitions)), f"{topic} has leaders")
    if records:
        values = [Record(FIRST_MS + number * 1000, None, b"x") for number in range(records)]
        with Client(place.broker.bootstrap) as writer:
            for partition in range(partitions):
                writer.produce(topic, partition, bytes(build_batch(values)))
    return topic


def _commit(place: Place, what: str, offsets: Mapping[tuple[str, int], int]) -> str:
    group = place.name_of(what)
    with Client(place.broker.bootstrap) as client:
        assert (
            commit_offsets(client, group, {TopicPartition(*where): offset for where, offset in offsets.items()}) == {}
        )
    return group


@contextlib.contextmanager
def _member(place: Place, group: str, topic: str, partitions: int, **settings: str) -> Iterator[None]:
    """A member that has all partitions and stays."""
    consumer = Consumer(
        {"bootstrap.servers": place.broker.bootstrap, "group.id": group, "client.id": "tests", **settings}
    )
    consumer.subscribe([topic])

    def is_stable() -> bool:
        consumer.poll(0.05)
        with Admin(place.broker.bootstrap) as admin:
            found = describe_consumer_groups(admin, [group])[group]
        return getattr(found, "state", None) == "Stable" and len(consumer.assignment()) == partitions

    try:
        wait_until(is_stable, f"{group} is stable")
        yield
    finally:
        consumer.close()


# --- list and describe ------------------------------------------------------------------------------------------------


def test_group_without_members_is_described(places: Places) -> None:
    def scenario(place: Place) -> None:
        orders = _new_topic(place, "orders", partitions=2, records=10)
        other = _new_topic(place, "other")
        group = _commit(place, "billing", {(orders, 0): 4, (orders, 1): 10, (other, 0): 0})
        _commit(place, "audit", {(orders, 0): 4})
        _run(place, "--describe", "--group", group)
        _run(place, "--describe", "--group", group, "--verbose")
        _run(place, "--describe", "--group", group, "--group", place.name_of("audit"), "--offsets")
        _run(place, "--describe", "--group", group, "--members", "--verbose")
        _run(place, "--describe", "--group", group, "--state")
        _run(place, "--describe", "--group", group, "--state", "--verbose")
        _own_lines(place, "--list")
        _own_lines(place, "--list", "--state")
        _own_lines(place, "--list", "--type")
        _own_lines(place, "--list", "--type", "classic", "--state", "empty,Stable")
        _own_lines(place, "--list", "--state", "stable")
        _own_lines(place, "--list", "--type", "consumer")
        _own_lines(place, "--describe", "--all-groups")
        _own_lines(place, "--describe", "--all-groups", "--state")

    same_at_all(places, scenario)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_with_a_member_is_described(places: Places, protocol: str) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"tests-[0-9a-f-]{36}|one-[0-9a-f-]{36}", "MEMBER" + "x" * 34)
        place.mask(r"[\w/+-]{22}(?= +(one +)?/)", "MEMBER" + "x" * 16)
        orders = _new_topic(place, "orders", partitions=2, records=3)
        other = _new_topic(place, "other", records=1)
        group = _commit(place, "billing", {(orders, 1): 1, (other, 0): 1})
        with _member(place, group, orders, 2, **{"group.protocol": protocol}):
            for details in ((), ("--verbose",), ("--members",), ("--members", "--verbose"), ("--state", "--verbose")):
                _run(place, "--describe", "--group", group, *details)
            _own_lines(place, "--list", "--state", "--type")
            _run(place, "--delete", "--group", group)
            _run(place, "--delete-offsets", "--group", group, "--topic", orders, "--topic", f"{other}:0")
            _run(place, "--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--execute")
            _run(place, "--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--dry-run", "--export")

    same_at_all(places, scenario)


def test_static_member_is_shown_with_its_instance_id(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"one-[0-9a-f-]{36}", "MEMBER")
        orders = _new_topic(place, "orders")
        group = place.name_of("billing")
        with _member(place, group, orders, 1, **{"group.instance.id": "one"}):
            _run(place, "--describe", "--group", group, "--members")
            _run(place, "--describe", "--group", group, "--members", "--verbose")

    same_at_all(places, scenario)


def test_group_that_does_not_exist(places: Places) -> None:
    def scenario(place: Place) -> None:
        orders, group = _new_topic(place, "orders", records=1), place.name_of("nobody")
        for details in ((), ("--members",), ("--state",)):
            _run(place, "--describe", "--group", group, *details)
        _run(place, "--delete", "--group", group)
        _run(place, "--delete-offsets", "--group", group, "--topic", orders)
        _run(place, "--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--dry-run")
        _run(place, "--reset-offsets", "--group", group, "--topic", orders, "--to-current", "--dry-run")

    same_at_all(places, scenario)


# --- delete -----------------------------------------------------------------------------------------------------------


def test_groups_and_offsets_are_deleted(places: Places) -> None:
    def scenario(place: Place) -> None:
        orders, other = _new_topic(place, "orders", partitions=2), _new_topic(place, "other")
        group = _commit(place, "billing", {(orders, 0): 1, (orders, 1): 2, (other, 0): 3})
        for topics in ([f"{orders}:0"], [orders, f"{other}:0,1"], [place.name_of("nowhere")], [f"{orders}:9"]):
            _run(
                place, "--delete-offsets", "--group", group, *(word for topic in topics for word in ("--topic", topic))
            )
        _run(place, "--describe", "--group", group)
        audit = _commit(place, "audit", {(orders, 0): 1})
        again = _commit(place, "billing", {(orders, 0): 1})
        _run(place, "--delete", "--group", audit, "--group", place.name_of("nobody"), in_order=False)
        _run(place, "--delete", "--group", again)
        _own_lines(place, "--list")

    same_at_all(places, scenario)


# --- reset ------------------------------------------------------------------------------------------------------------

SCENARIOS = (
    ("--to-earliest",),
    ("--to-latest",),
    ("--to-current",),
    ("--to-offset", "3"),
    ("--to-offset", "99"),
    ("--shift-by", "2"),
    ("--shift-by", "-99"),
    ("--to-datetime", "2023-11-14T22:13:25.000"),
    ("--to-datetime", "2023-11-14T23:13:25.500+01:00"),
    ("--to-datetime", "2023-11-14"),
    ("--to-datetime", "noTime"),
    ("--by-duration", "P1D"),
    ("--by-duration", "P9999D"),
    ("--by-duration", "soon"),
)


def test_offsets_are_reset_to_every_kind_of_target(places: Places) -> None:
    def scenario(place: Place) -> None:
        orders = _new_topic(place, "orders", partitions=2, records=10)
        group = _commit(place, "billing", {(orders, 0): 4, (orders, 1): 5})
        reset = ("--reset-offsets", "--group", group)
        for target in SCENARIOS:
            _run(place, *reset, "--all-topics", *target, "--dry-run", in_order=False)
        _run(place, "--describe", "--group", group)
        _run(place, *reset, "--topic", f"{orders}:1", "--shift-by", "-2", "--execute")
        _run(place, "--describe", "--group", group)
        _run(place, *reset, "--topic", orders, "--to-earliest", "--execute", in_order=False)
        _run(place, "--describe", "--group", group)

    same_at_all(places, scenario)


def test_scopes_of_a_reset(places: Places) -> None:
    def scenario(place: Place) -> None:
        orders, other = _new_topic(place, "orders", partitions=3, records=2), _new_topic(place, "other", records=1)
        group = _commit(place, "billing", {(orders, 0): 1})
        audit = _commit(place, "audit", {(orders, 1): 1})
        reset = ("--reset-offsets", "--group", group)
        for topics in ([orders], [f"{orders}:0,2"], [f"{orders}:0", other], [f"{orders}:7"], [f"{orders}:x"]):
            named = [word for topic in topics for word in ("--topic", topic)]
            _run(place, *reset, *named, "--to-latest", "--dry-run", in_order=False)
        for topic in (f"{orders}:0:1", place.name_of("nowhere"), f"{place.name_of('nowhere')}:0"):
            _run(place, *reset, "--topic", topic, "--to-latest", "--dry-run")
        _run(place, *reset, "--topic", orders, "--shift-by", "1", "--dry-run")
        _run(place, *reset, "--group", audit, "--all-topics", "--to-latest", in_order=False)
        _own_lines(place, "--reset-offsets", "--all-groups", "--topic", orders, "--to-latest", "--dry-run")

    same_at_all(places, scenario)


def test_plans_are_exported_and_read(places: Places) -> None:
    def scenario(place: Place) -> None:
        orders = _new_topic(place, "orders", partitions=2, records=5)
        group = _commit(place, "billing", {(orders, 0): 4, (orders, 1): 1})
        audit = _commit(place, "audit", {(orders, 0): 1})
        reset, both = ("--reset-offsets", "--group", group), ("--group", audit)
        _run(place, *reset, "--all-topics", "--to-current", "--dry-run", "--export", in_order=False)
        _run(place, *reset, *both, "--all-topics", "--to-current", "--dry-run", "--export", in_order=False)
        plan = place.file(f'{orders},0,2\n"{orders}",1,99\n', "plan")
        _run(place, *reset, "--from-file", plan, "--dry-run", in_order=False)
        _run(place, *reset, *both, "--from-file", plan, "--dry-run", in_order=False)
        place.mask(r"^(Cannot deserialize| at \[Source).*\n?", "")  # a stack trace of what its reader tries first
        of_both = place.file(f"{group},{orders},0,1\n{audit},{orders},0,5\n", "plan-of-both")
        _run(place, *reset, *both, "--from-file", of_both, "--execute", in_order=False)
        _run(place, "--describe", "--group", group, *both)
        _run(place, *reset, "--from-file", place.folder / "nowhere", "--dry-run")

    same_at_all(places, scenario)


# --- options ----------------------------------------------------------------------------------------------------------

WRONG = [
    ADDRESS,
    ("--list",),
    *(
        (*ADDRESS, "--list", *others)
        for others in (("--describe",), ("--members",), ("--group", "x"), ("--topic", "x"))
    ),
    *((*ADDRESS, "--list", *others) for others in (("--state", "odd"), ("--type", "share"), ("--timeout", "x"))),
    (*ADDRESS, "--describe"),
    *(
        (*ADDRESS, "--describe", "--group", "x", *others)
        for others in (
            ("--all-groups",),
            ("--members", "--state"),
            ("--state", "stable"),
            ("--topic", "x"),
            ("--type",),
        )
    ),
    *(
        (*ADDRESS, "--delete", *others)
        for others in ((), ("--group", "x", "--topic", "y"), ("--group", "x", "--state"))
    ),
    *((*ADDRESS, "--delete-offsets", *others) for others in ((), ("--group", "x"), ("--all-groups", "--topic", "x"))),
    (*ADDRESS, "--reset-offsets"),
    *(
        (*ADDRESS, "--reset-offsets", "--group", "x", *others)
        for others in (
            ("--execute", "--dry-run"),
            ("--all-groups", "--dry-run"),
            ("--dry-run", "--to-latest", "--to-earliest"),
            ("--dry-run", "--to-offset", "1", "--shift-by", "2"),
            ("--dry-run", "--from-file", "x", "--to-latest"),
        )
    ),
    ("--validate-regex", "x", *ADDRESS, "--list"),
    ("--validate-regex",),
    *(
        ("--validate-regex", regex)
        for regex in ("foo.*", "[", "(?=x)", "*", "(a", "a{2,1}", "a**", "\\8", "[z-a]", "(?i)a")
    ),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_options_that_need_no_broker(places: Places, arguments: tuple[str, ...]) -> None:
    kafka, ours, _ = places
    same_at_all((kafka, ours), lambda place: _see_with_sorted_lists(place, *arguments))


def _see_with_sorted_lists(place: Place, *arguments: str) -> None:
    """Kafka's command names the options that go together in an order that differs from JVM to JVM."""
    done = place.run_unseen(CONSUMER_GROUPS, *arguments)
    place.see([done.code, sentences(done.output), sorted(re.split(r"[\s,\[\]]+", sentences(done.errors)))])


@pytest.mark.parametrize("target", [(), ("--to-latest",), ("--all-topics",)], ids=" ".join)
def test_reset_says_what_is_missing(places: Places, target: tuple[str, ...]) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"Error: Executing consumer group command failed due to ToolExit", "")  # of the shared JVM
        group = place.name_of("billing")
        _see_with_sorted_lists(place, *place.servers, "--reset-offsets", "--group", group, *target)

    same_at_all(places, scenario)


UNREACHABLE = [
    ("--describe", "--group", "x"),
    ("--delete", "--group", "x"),
    ("--delete-offsets", "--group", "x", "--topic", "t:0"),
    ("--reset-offsets", "--group", "x", "--topic", "t", "--to-latest", "--dry-run"),
    ("--list",),
]


@pytest.mark.parametrize("arguments", first_and_long(UNREACHABLE))
def test_no_broker_reachable_is_a_sentence_after_the_timeout(places: Places, arguments: tuple[str, ...]) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"(java|org)\.[\w.]+Exception: ", "")
        config = place.file("default.api.timeout.ms=300\nrequest.timeout.ms=200\n")
        place.run(CONSUMER_GROUPS, *ADDRESS, *arguments, "--timeout", "300", "--command-config", config)

    kafka, ours, _ = places
    same_at_all((kafka, ours), scenario)
