"""GetTelemetrySubscriptions and PushTelemetry (KIP-714), and the settings of subscriptions.

Each scenario's client has an id of its own, by which its subscription is matched: nobody else is subscribed.
"""

import gzip
import uuid

import lz4.frame
import zstandard

from kaspar.base.ids import uuid_to_text
from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Learnt, Own
from tests.compat.responses.scenario import Ask, Eventually, Scenario, Step
from tests.compat.responses.scenarios.requests import (
    CLIENT_METRICS,
    DELETE,
    SET,
    UNKNOWN_ID,
    ZERO_ID,
    Body,
    described,
    resource,
    setting,
    until_setting,
)
from tests.peers.otlp import gauge, metrics_data, padding, total

GET, PUSH = Api.GET_TELEMETRY_SUBSCRIPTIONS, Api.PUSH_TELEMETRY
INCREMENTAL, ALTER, DESCRIBE, LIST = (
    Api.INCREMENTAL_ALTER_CONFIGS,
    Api.ALTER_CONFIGS,
    Api.DESCRIBE_CONFIGS,
    Api.LIST_CONFIG_RESOURCES,
)
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
INTERVAL_MS = 299_000
"""As good as for ever: no scenario waits for the next interval."""

_SUBSCRIPTION = Own("s")
_METRICS = metrics_data(gauge("org.apache.kafka.producer.a", 1.5), total("org.apache.kafka.producer.b", 2, delta=True))


def _lz4(data: bytes) -> bytes:
    frame = lz4.frame.LZ4FrameCompressor(block_linked=False)  # Kafka reads no other
    return frame.begin() + frame.compress(data) + frame.flush()


def _id(name: str) -> uuid.UUID:
    return uuid.uuid5(UNKNOWN_ID, name)


def _get(client: uuid.UUID) -> Ask:
    return Ask(GET, {"client_instance_id": client})


def _push(
    client: uuid.UUID,
    metrics: bytes = _METRICS,
    *,
    compression: int = NONE,
    terminating: bool = False,
    wrong_by: int = 0,
) -> Ask:
    return Ask(
        PUSH,
        {
            "client_instance_id": client,
            "subscription_id": Learnt("subscription", wrong_by),
            "terminating": terminating,
            "compression_type": compression,
            "metrics": metrics,
        },
    )


def _alter(*configs: Body) -> Ask:
    return Ask(
        INCREMENTAL, {"resources": [resource(CLIENT_METRICS, _SUBSCRIPTION, *configs)], "validate_only": False}, 1
    )


def _subscribe(client: uuid.UUID, metrics: str) -> list[Step]:
    return [
        _alter(
            setting("metrics", metrics, SET),
            setting("interval.ms", str(INTERVAL_MS), SET),
            setting("match", f"client_instance_id={uuid_to_text(client)}", SET),
        ),
        Eventually(GET, {"client_instance_id": client}, "push_interval", INTERVAL_MS),
    ]


def _unsubscribe() -> Ask:
    return _alter(*(setting(name, None, DELETE) for name in ("metrics", "interval.ms", "match")))


def _pushes(name: str, *steps: Ask) -> Scenario:
    """After the client has asked for its subscription."""
    client = _id(name)
    ask = Ask(GET, {"client_instance_id": client}, learn={"subscription": "subscription_id"})
    mine = [
        Ask(each.api, {**each.body, "client_instance_id": client})
        if each.body["client_instance_id"] == ZERO_ID
        else each
        for each in steps
    ]
    return Scenario(name, PUSH, [ask, *mine])


_ME = ZERO_ID  # until its scenario gives it an id

_GET = [
    Scenario(
        "without an id",
        GET,
        [_get(ZERO_ID), _get(ZERO_ID)],
        masks=["GetTelemetrySubscriptions.subscription_id"],
    ),
    Scenario("with an id of its own", GET, [_get(_id("own"))]),
    Scenario("the id one", GET, [_get(uuid.UUID(int=1))]),
    Scenario("asked twice", GET, [_get(_id("twice")), _get(_id("twice"))]),
    Scenario("a body that is cut", GET, [Ask(GET, {"client_instance_id": UNKNOWN_ID}, cut=3)]),
    Scenario("bytes after the body", GET, [Ask(GET, {"client_instance_id": UNKNOWN_ID}, extra=b"xyz")]),
    *(
        Scenario(
            name,
            GET,
            [
                Ask(LIST, {"resource_types": [CLIENT_METRICS]}, 1),
                Ask(DESCRIBE, described(_SUBSCRIPTION, kind=CLIENT_METRICS), 4),
                _get(_id(name)),
                _unsubscribe(),
                Eventually(GET, {"client_instance_id": _id(name)}, "push_interval", 300_000, compare=True),
                Ask(LIST, {"resource_types": [CLIENT_METRICS]}, 1),
            ],
            given=_subscribe(_id(name), metrics),
        )
        for name, metrics in (
            ("subscribed for one prefix", "org.apache.kafka.producer."),
            ("subscribed for all metrics", "org.apache.kafka.producer.,*"),
            ("subscribed for nothing", ""),
        )
    ),
]

_PLAIN_PUSH = Ask(
    PUSH,
    {
        "client_instance_id": ZERO_ID,
        "subscription_id": 1,
        "terminating": False,
        "compression_type": NONE,
        "metrics": b"",
    },
)
_PUSH = [
    Scenario("without an id", PUSH, [_PLAIN_PUSH]),
    Scenario("the id one", PUSH, [Ask(PUSH, {**_PLAIN_PUSH.body, "client_instance_id": uuid.UUID(int=1)})]),
    Scenario("without having asked", PUSH, [Ask(PUSH, {**_PLAIN_PUSH.body, "client_instance_id": _id("unasked")})]),
    _pushes("nothing", _push(_ME, b"")),
    _pushes("plain", _push(_ME)),
    _pushes("gzip", _push(_ME, gzip.compress(_METRICS), compression=GZIP)),
    _pushes("lz4", _push(_ME, _lz4(_METRICS), compression=LZ4)),
    _pushes("zstd", _push(_ME, zstandard.ZstdCompressor().compress(_METRICS), compression=ZSTD)),
    _pushes("an unknown compression type", _push(_ME, compression=9), _get(_ME)),
    _pushes("a negative compression type", _push(_ME, compression=-1)),
    _pushes("another subscription", _push(_ME, wrong_by=1), _get(_ME), _push(_ME)),
    _pushes("twice", _push(_ME), _push(_ME), _get(_ME)),
    _pushes("the last one at once", _push(_ME), _push(_ME, terminating=True), _push(_ME), _push(_ME, terminating=True)),
    _pushes("as much as is allowed", _push(_ME, padding(1_048_576))),
    _pushes("more than is allowed", _push(_ME, bytes(1_048_577))),
    _pushes("more than is allowed, compressed", _push(_ME, gzip.compress(padding(1_048_577)), compression=GZIP)),
    _pushes("bytes that are no metrics", _push(_ME, b"\xff\xff\xff")),
    _pushes("bytes that are not zstd", _push(_ME, _METRICS, compression=ZSTD)),
    _pushes("bytes that are not gzip", _push(_ME, _METRICS, compression=GZIP)),
    _pushes("fields that nobody knows", _push(_ME, b"\xf8\x07\x01" + _METRICS)),
]


def _altered(name: str, *configs: tuple[str, str | None], is_refused: bool = False) -> Scenario:
    """What a subscription may be set to."""
    steps: list[Step] = [_alter(*(setting(key, value, SET) for key, value in configs))]
    key, value = configs[-1]
    if not is_refused:
        assert value is not None
        steps.append(until_setting(key, value, resource_name=_SUBSCRIPTION, kind=CLIENT_METRICS))
    steps += [Ask(DESCRIBE, described(_SUBSCRIPTION, kind=CLIENT_METRICS), 4), _unsubscribe()]
    return Scenario(f"client metrics: {name}", INCREMENTAL, steps, versions=[1])


_NEVER = ("match", "client_id=nobody")

_SETTINGS = [
    _altered("an interval", ("interval.ms", "100"), _NEVER),
    _altered("the longest interval", ("interval.ms", "3600000"), _NEVER),
    _altered("an interval that is too short", ("interval.ms", "99"), is_refused=True),
    _altered("an interval that is too long", ("interval.ms", "3600001"), is_refused=True),
    _altered("an interval that is no number", ("interval.ms", "soon"), is_refused=True),
    _altered("an interval that is null", ("interval.ms", None), is_refused=True),
    _altered("an unknown setting", ("retention.ms", "1"), is_refused=True),
    _altered("metrics", ("metrics", "a.,b."), _NEVER),
    _altered("the same metric twice", ("metrics", "a.,a."), _NEVER),
    _altered("an empty metric among others", ("metrics", "a.,,b."), _NEVER, is_refused=True),
    *(
        _altered(f"match {name}", ("match", pattern), is_refused=True)
        for name, pattern in (
            ("without a pattern", "client_id"),
            ("with an empty pattern", "client_id="),
            ("with two equals signs", "client_id=="),
            ("without a name", "=x"),
            ("with an equals sign in the pattern", "client_id=a=b"),
            ("of an unknown name", "client_name=a"),
            ("of no expression", "client_id=["),
            ("with an empty end", "client_id=nobody,"),
        )
    ),
    *(
        _altered(f"match {name}", ("match", pattern))
        for name, pattern in (
            ("of two names", "client_id=nobody,client_source_port=1"),
            ("with blanks", "client_id = nobody,client_software_name = x.*"),
            ("of one name twice", "client_id=nobody,client_id=nobody2"),
        )
    ),
]

SCENARIOS = [*_GET, *_PUSH, *_SETTINGS]
