"""When clients may ask and push, what they are subscribed for, and how many are remembered."""

import uuid

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import uuid_to_text
from kaspar.broker.telemetry.clients import ClientInstance, ClientInstances
from kaspar.broker.telemetry.subscriptions import ClientAttributes, Subscriptions

ID = uuid.UUID(int=0x1234_5678_9ABC_DEF0_0FED_CBA9_8765_4321)
INTERVAL_MS = 1000


def attributes(client_instance_id: uuid.UUID = ID, client_id: str | None = "c") -> ClientAttributes:
    return ClientAttributes(client_instance_id, client_id, "java", "4.3.0", "10.0.0.1", "4567", "User:a")


def subscriptions(**configs: dict[str, str]) -> Subscriptions:
    known = Subscriptions()
    known.update(configs)
    return known


def instances(max_clients: int = 10) -> ClientInstances:
    return ClientInstances(subscriptions(s={"metrics": "*", "interval.ms": str(INTERVAL_MS)}), max_clients)


def client() -> ClientInstance:
    return instances().get(attributes())[0]


def push(pushing: ClientInstance, now_ms: int, **changed: int) -> ErrorCode:
    values = {"subscription_id": pushing.subscribed.id, "compression": 4, "size": 10, "max_bytes": 100, **changed}
    try:
        pushing.push(terminating=bool(values.pop("terminating", 0)), now_ms=now_ms, **values)
    except Refused as refusal:
        return refusal.code
    return ErrorCode.NONE


def ask(asking: ClientInstance, now_ms: int) -> ErrorCode:
    try:
        asking.ask(now_ms)
    except Refused as refusal:
        return refusal.code
    return ErrorCode.NONE


# -- what a client is subscribed for -----------------------------------------------------------------------------------


def test_subscriptions_that_match_are_united() -> None:
    known = subscriptions(
        all_clients={"metrics": "b,a", "interval.ms": "5000"},
        of_java={"metrics": "c", "interval.ms": "2000", "match": "client_software_name=ja.*,client_source_port=\\d+"},
        of_nobody={"metrics": "d", "interval.ms": "100", "match": "client_id=nobody"},
    )
    subscribed = known.of(attributes())
    assert (subscribed.metrics, subscribed.interval_ms) == (("a", "b", "c"), 2000)
    assert subscribed.includes("alpha")
    assert not subscribed.includes("delta")


def test_a_star_stands_for_all_metrics() -> None:
    subscribed = subscriptions(one={"metrics": "a"}, other={"metrics": "*"}).of(attributes())
    assert subscribed.metrics == ("*",)
    assert subscribed.includes("anything")


def test_without_a_subscription_nothing_is_asked_for() -> None:
    subscribed = subscriptions().of(attributes())
    assert (subscribed.metrics, subscribed.interval_ms) == ((), 300_000)
    assert not subscribed.includes("anything")


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=c", True),
        ("client_id=.", True),
        ("client_id=cc", False),
        ("client_source_address=10\\..*", True),
        ("client_source_address=10", False),
        (f"client_instance_id={uuid_to_text(ID)}", True),
    ],
)
def test_patterns_match_whole_values(match: str, matches: bool) -> None:
    assert (subscriptions(s={"metrics": "m", "match": match}).of(attributes()).metrics == ("m",)) is matches


def test_a_client_without_an_id_matches_no_pattern_of_ids() -> None:
    known = subscriptions(s={"metrics": "m", "match": "client_id=.*"})
    assert known.of(attributes(client_id=None)).metrics == ()


def test_a_pattern_that_only_java_understands_is_not_used() -> None:
    known = subscriptions(java={"metrics": "a", "match": "client_id=(?!x).*"}, other={"metrics": "b"})
    assert known.of(attributes()).metrics == ("b",)


def test_the_subscription_id_depends_on_metrics_interval_and_client() -> None:
    ids = {
        subscriptions(s={"metrics": metrics, "interval.ms": interval}).of(attributes(client)).id
        for metrics in ("a", "b")
        for interval in ("1000", "2000")
        for client in (ID, uuid.UUID(int=7))
    }
    assert len(ids) == 8
    assert all(-(1 << 31) <= each < 1 << 31 for each in ids)


# -- when it may ask and push ------------------------------------------------------------------------------------------


def test_a_client_asks_once_in_an_interval() -> None:
    asking = client()
    assert ask(asking, 0) == ErrorCode.NONE
    assert ask(asking, INTERVAL_MS - 1) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert ask(asking, INTERVAL_MS) == ErrorCode.NONE


def test_a_client_pushes_at_once_after_asking_and_then_once_in_an_interval() -> None:
    pushing = client()
    ask(pushing, 0)
    assert push(pushing, 1) == ErrorCode.NONE
    assert push(pushing, INTERVAL_MS) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(pushing, INTERVAL_MS + 1) == ErrorCode.NONE


def test_a_client_that_nobody_knows_may_push() -> None:
    """Its broker was started again, or it was with another one."""
    assert push(client(), 5) == ErrorCode.NONE


def test_the_last_push_is_never_too_early_and_nothing_follows_it() -> None:
    pushing = client()
    assert push(pushing, 0) == ErrorCode.NONE
    assert push(pushing, 1, terminating=1) == ErrorCode.NONE
    assert push(pushing, 5 * INTERVAL_MS) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"subscription_id": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"size": 101}, ErrorCode.TELEMETRY_TOO_LARGE),
    ],
)
def test_refused_pushes(changed: dict[str, int], code: ErrorCode) -> None:
    pushing = client()
    ask(pushing, 0)
    assert push(pushing, 1, **changed) == code
    may_ask = code in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    assert (ask(pushing, 2) == ErrorCode.NONE) is may_ask


# -- which clients are remembered --------------------------------------------------------------------------------------


def test_a_changed_subscription_is_seen_at_once_and_starts_the_interval_again() -> None:
    known = subscriptions(s={"metrics": "a", "interval.ms": "1000"})
    clients = ClientInstances(known)
    before, _ = clients.get(attributes())
    ask(before, 0)
    known.update({"s": {"metrics": "b", "interval.ms": "1000"}})
    after, outdated = clients.get(attributes())
    assert outdated == [ID]
    assert before.is_forgotten
    assert after.subscribed.metrics == ("b",)
    assert ask(after, 1) == ErrorCode.NONE


def test_equal_subscriptions_change_nothing() -> None:
    known = subscriptions(s={"metrics": "a"})
    clients = ClientInstances(known)
    before, _ = clients.get(attributes())
    known.update({"s": {"metrics": "a"}})
    assert clients.get(attributes()) == (before, [])


def test_the_client_unheard_of_for_longest_goes_first() -> None:
    clients = instances(max_clients=3)
    ids = [uuid.UUID(int=number) for number in range(10, 14)]
    for each in ids[:3]:
        assert clients.get(attributes(each))[1] == []
    clients.get(attributes(ids[0]))
    assert clients.get(attributes(ids[3]))[1] == [ids[1]]
    assert len(clients) == 3
    assert ids[0] in clients
