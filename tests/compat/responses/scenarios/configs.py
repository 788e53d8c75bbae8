"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from collections.abc import Sequence

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Topic
from tests.compat.responses.scenario import Ask, NewTopic, Scenario, Step
from tests.compat.responses.scenarios.requests import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    Body,
    described,
    resource,
    see_settings,
    setting,
    until_setting,
)

DESCRIBE, ALTER, INCREMENTAL = Api.DESCRIBE_CONFIGS, Api.ALTER_CONFIGS, Api.INCREMENTAL_ALTER_CONFIGS
RESOURCES = Api.LIST_CONFIG_RESOURCES
_T = Topic("t")
_CHANGED = NewTopic(
    configs={"retention.ms": "1234", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.25"}
)


def _describe(name: str, body: Body, *, topic: NewTopic | None = None) -> Scenario:
    return Scenario(name, DESCRIBE, [Ask(DESCRIBE, body)], [topic or NewTopic()], shared=True)


def _two(*resources: Body) -> Body:
    return {"resources": [{"configuration_keys": None, **one} for one in resources]}


_DESCRIBE = [
    _describe("a topic", described(_T)),
    _describe(
        "a topic with synonyms and documentation",
        {**described(_T), "include_synonyms": True, "include_documentation": True},
    ),
    _describe("a topic that was changed, with synonyms", {**described(_T), "include_synonyms": True}, topic=_CHANGED),
    _describe("a topic that was changed", described(_T), topic=_CHANGED),
    _describe("two settings of a topic", described(_T, "retention.ms", "segment.bytes")),
    _describe("an unknown setting of a topic", described(_T, "retention.ms", "no.such.setting")),
    _describe("the same setting twice", described(_T, "retention.ms", "retention.ms")),
    _describe(
        "an empty list of settings",
        {"resources": [{"resource_type": TOPIC, "resource_name": _T, "configuration_keys": []}]},
    ),
    _describe("an unknown topic", described(Topic("missing"))),
    _describe("a topic name that may not be", described("a b")),
    _describe("an empty topic name", described("")),
    _describe("this broker", described("1", kind=BROKER)),
    _describe(
        "this broker with synonyms and documentation",
        {**described("1", kind=BROKER), "include_synonyms": True, "include_documentation": True},
    ),
    _describe(
        "some settings of this broker",
        {
            **described("1", "log.retention.ms", "num.partitions", "log.cleaner.threads", "node.id", kind=BROKER),
            "include_synonyms": True,
        },
    ),
    _describe(
        "a setting of this broker with its older names",
        {
            **described("1", "log.retention.ms", "log.roll.ms", "log.retention.hours", kind=BROKER),
            "include_synonyms": True,
        },
    ),
    _describe("the default of all brokers", described("", kind=BROKER)),
    _describe("another broker", described("2", kind=BROKER)),
    _describe("a broker that is no number", described("one", kind=BROKER)),
    _describe("loggers of another broker", described("2", kind=BROKER_LOGGER)),
    _describe("loggers of no broker", described("", kind=BROKER_LOGGER)),
    _describe("a kind that does not exist", described("x", kind=3)),
    _describe("the unknown kind", described("x", kind=0)),
    _describe("client metrics", described("metrics", kind=CLIENT_METRICS)),
    _describe("client metrics without a name", described("", kind=CLIENT_METRICS)),
    _describe("a group", described("group", kind=GROUP)),
    _describe("a group without a name", described("", kind=GROUP)),
    _describe("nothing", {"resources": []}),
    _describe(
        "a good and a bad one",
        _two(
            {"resource_type": TOPIC, "resource_name": Topic("missing")}, {"resource_type": TOPIC, "resource_name": _T}
        ),
    ),
    _describe(
        "the same twice",
        _two({"resource_type": TOPIC, "resource_name": _T}, {"resource_type": TOPIC, "resource_name": _T}),
    ),
    Scenario("a body that is cut", DESCRIBE, [Ask(DESCRIBE, described(_T), cut=7)], [NewTopic()]),
]

_SEEN = see_settings("retention.ms", "cleanup.policy", "segment.bytes", "min.insync.replicas")


def _alter(
    name: str, *resources: Body, then: Sequence[Step] = (_SEEN,), patience: float | None = None, **more: object
) -> Scenario:
    body = {"resources": list(resources), **more}
    order = ["AlterConfigs.responses"] if len(resources) > 1 else []
    return Scenario(name, ALTER, [Ask(ALTER, body, patience=patience), *then], [_CHANGED], unordered=order)


_ALTER = [
    _alter(
        "what is not named goes back to its default",
        resource(TOPIC, _T, setting("retention.ms", "99")),
        then=[until_setting("retention.ms", "99"), _SEEN],
    ),
    _alter(
        "all go back to their defaults", resource(TOPIC, _T), then=[until_setting("cleanup.policy", "delete"), _SEEN]
    ),
    _alter("only checked", resource(TOPIC, _T, setting("retention.ms", "99")), validate_only=True),
    _alter("an unknown setting", resource(TOPIC, _T, setting("no.such.setting", "1"))),
    _alter("a wrong value", resource(TOPIC, _T, setting("retention.ms", "soon"))),
    _alter("a wrong value, only checked", resource(TOPIC, _T, setting("retention.ms", "soon")), validate_only=True),
    _alter("a null value", resource(TOPIC, _T, setting("retention.ms", None))),
    _alter("a setting twice", resource(TOPIC, _T, setting("retention.ms", "5"), setting("retention.ms", "6"))),
    _alter("an unknown topic", resource(TOPIC, Topic("missing"), setting("retention.ms", "5"))),
    _alter("a topic name that may not be", resource(TOPIC, "a b", setting("retention.ms", "5"))),
    _alter("an empty topic name", resource(TOPIC, "", setting("retention.ms", "5"))),
    _alter("another broker", resource(BROKER, "2", setting("log.cleaner.threads", "2"))),
    _alter("a broker that is no number", resource(BROKER, "one", setting("log.cleaner.threads", "2"))),
    _alter("a setting of this broker that needs a restart", resource(BROKER, "1", setting("broker.id", "2"))),
    _alter("an unknown setting of this broker", resource(BROKER, "1", setting("no.such.setting", "2"))),
    _alter("a wrong value for this broker", resource(BROKER, "1", setting("log.cleaner.threads", "many"))),
    _alter("loggers", resource(BROKER_LOGGER, "1", setting("kafka", "INFO"))),
    _alter("a kind that does not exist", resource(3, "x", setting("a", "b"))),
    _alter("the unknown kind", resource(0, "x", setting("a", "b"))),
    _alter("nothing"),
    _alter(
        "a good and a bad one",
        resource(TOPIC, Topic("missing")),
        resource(TOPIC, _T, setting("retention.ms", "5")),
        then=[until_setting("retention.ms", "5")],
    ),
    _alter(
        "the same twice",
        resource(TOPIC, _T, setting("retention.ms", "5")),
        resource(TOPIC, _T, setting("retention.ms", "6")),
        patience=1.0,
    ),
]


def _change(
    name: str, *changes: Body, then: Sequence[Step] = (_SEEN,), kind: int = TOPIC, on: object = _T, **more: object
) -> Scenario:
    return _changes(name, resource(kind, on, *changes), then=then, **more)


def _changes(name: str, *resources: Body, then: Sequence[Step] = (_SEEN,), **more: object) -> Scenario:
    body = {"resources": list(resources), **more}
    order = ["IncrementalAlterConfigs.responses"] if len(resources) > 1 else []
    return Scenario(name, INCREMENTAL, [Ask(INCREMENTAL, body), *then], [_CHANGED], unordered=order)


def _ask_change(kind: int, on: object, *changes: Body) -> Ask:
    return Ask(INCREMENTAL, {"resources": [resource(kind, on, *changes)]})


_THREADS, _SIZE = "log.cleaner.threads", "message.max.bytes"
_SEE_BROKER = Ask(DESCRIBE, {**described("1", _THREADS, _SIZE, kind=BROKER), "include_synonyms": True}, version=4)
_SEE_DEFAULT = Ask(DESCRIBE, {**described("", kind=BROKER), "include_synonyms": True}, version=4)
_INCREMENTAL = [
    _change("set", setting("retention.ms", "99", SET), then=[until_setting("retention.ms", "99"), _SEEN]),
    _change(
        "set two",
        setting("retention.ms", "99", SET),
        setting("segment.bytes", "2097152", SET),
        then=[until_setting("segment.bytes", "2097152"), _SEEN],
    ),
    _change("delete", setting("cleanup.policy", None, DELETE), then=[until_setting("cleanup.policy", "delete"), _SEEN]),
    _change(
        "delete with a value", setting("cleanup.policy", "x", DELETE), then=[until_setting("cleanup.policy", "delete")]
    ),
    _change("delete what is not set", setting("segment.bytes", None, DELETE)),
    _change("delete an unknown setting", setting("no.such.setting", None, DELETE)),
    _change(
        "subtract from a list",
        setting("cleanup.policy", "compact", SUBTRACT),
        then=[until_setting("cleanup.policy", "delete"), _SEEN],
    ),
    _change("subtract what is not in it", setting("cleanup.policy", "burn", SUBTRACT)),
    _change(
        "subtract all of it",
        setting("cleanup.policy", "compact,delete", SUBTRACT),
        then=[until_setting("cleanup.policy", ""), _SEEN],
    ),
    _change("append what is in it", setting("cleanup.policy", "compact", APPEND)),
    _change("append a wrong value", setting("cleanup.policy", "burn", APPEND)),
    Scenario(
        "append to a list",
        INCREMENTAL,
        [
            _ask_change(TOPIC, _T, setting("cleanup.policy", "compact", APPEND)),
            until_setting("cleanup.policy", "delete,compact"),
            _SEEN,
        ],
        [NewTopic()],
    ),
    Scenario(
        "append to a list that is not set",
        INCREMENTAL,
        [
            _ask_change(TOPIC, _T, setting("leader.replication.throttled.replicas", "0:1,1:1", APPEND)),
            until_setting("leader.replication.throttled.replicas", "0:1,1:1"),
            _ask_change(TOPIC, _T, setting("leader.replication.throttled.replicas", "0:1", SUBTRACT)),
            until_setting("leader.replication.throttled.replicas", "1:1"),
        ],
        [NewTopic()],
    ),
    _change("append to what is no list", setting("retention.ms", "5", APPEND)),
    _change("subtract from what is no list", setting("retention.ms", "5", SUBTRACT)),
    _change("an operation that does not exist", setting("retention.ms", "5", 9)),
    _change("set to null", setting("retention.ms", None, SET)),
    _change("append null", setting("cleanup.policy", None, APPEND)),
    _change("set to an empty value", setting("retention.ms", "", SET)),
    _change("a wrong value", setting("retention.ms", "soon", SET)),
    _change("a value out of bounds", setting("min.insync.replicas", "0", SET)),
    _change("a wrong value, only checked", setting("retention.ms", "soon", SET), validate_only=True),
    _change("only checked", setting("retention.ms", "99", SET), validate_only=True),
    _change("an unknown setting", setting("no.such.setting", "5", SET)),
    _change("a setting twice", setting("retention.ms", "5", SET), setting("retention.ms", "6", SET)),
    _change("a setting set and deleted", setting("retention.ms", "5", SET), setting("retention.ms", None, DELETE)),
    _change("one of two is wrong", setting("segment.bytes", "2097152", SET), setting("retention.ms", "soon", SET)),
    _change("no settings"),
    _change("an unknown topic", setting("retention.ms", "5", SET), on=Topic("missing")),
    _change("a topic name that may not be", setting("retention.ms", "5", SET), on="a b"),
    _change("an empty topic name", setting("retention.ms", "5", SET), on=""),
    _change("another broker", setting(_THREADS, "2", SET), kind=BROKER, on="2", then=[]),
    _change("a broker that is no number", setting(_THREADS, "2", SET), kind=BROKER, on="one", then=[]),
    _change(
        "a setting of this broker that needs a restart", setting("node.id", "2", SET), kind=BROKER, on="1", then=[]
    ),
    _change("an unknown setting of this broker", setting("no.such.setting", "2", DELETE), kind=BROKER, on="1", then=[]),
    _change("a wrong value for this broker", setting(_THREADS, "many", SET), kind=BROKER, on="1", then=[_SEE_BROKER]),
    _change(
        "a value out of bounds for this broker", setting(_THREADS, "-1", SET), kind=BROKER, on="1", then=[_SEE_BROKER]
    ),
    _change("no cleaner threads", setting(_THREADS, "0", SET), kind=BROKER, on="1", then=[_SEE_BROKER]),
    _change("three times as many cleaner threads", setting(_THREADS, "3", SET), kind=BROKER, on="", then=[_SEE_BROKER]),
    _change(
        "less than a megabyte for each cleaner thread",
        setting("log.cleaner.dedupe.buffer.size", "1048576", SET),
        kind=BROKER,
        on="1",
        then=[_SEE_BROKER],
    ),
    _change(
        "a per-broker setting for all brokers",
        setting("listeners", "PLAINTEXT://x:1", SET),
        kind=BROKER,
        on="",
        then=[],
    ),
    Scenario(
        "this broker's own, then all brokers'",
        INCREMENTAL,
        [
            _ask_change(BROKER, "", setting(_SIZE, "1000012", SET)),
            until_setting(_SIZE, "1000012", resource_name="1", kind=BROKER),
            _SEE_BROKER,
            _SEE_DEFAULT,
            _ask_change(BROKER, "1", setting(_SIZE, "2000012", SET)),
            until_setting(_SIZE, "2000012", resource_name="1", kind=BROKER),
            _SEE_BROKER,
            see_settings("max.message.bytes"),
            _ask_change(BROKER, "1", setting(_SIZE, None, DELETE)),
            until_setting(_SIZE, "1000012", resource_name="1", kind=BROKER),
            _ask_change(BROKER, "", setting(_SIZE, None, DELETE)),
            until_setting(_SIZE, "1048588", resource_name="1", kind=BROKER),
            _SEE_BROKER,
        ],
        [NewTopic()],
    ),
    _change("a logger of another broker", setting("kafka", "INFO", SET), kind=BROKER_LOGGER, on="2", then=[]),
    _change("a logger's level that does not exist", setting("kafka", "LOUD", SET), kind=BROKER_LOGGER, on="1", then=[]),
    _change("a kind that does not exist", setting("a", "b", SET), kind=3, on="x", then=[]),
    _change("the unknown kind", setting("a", "b", SET), kind=0, on="x", then=[]),
    _changes("nothing"),
    _changes(
        "a good and a bad one",
        resource(TOPIC, Topic("missing"), setting("retention.ms", "5", SET)),
        resource(TOPIC, _T, setting("retention.ms", "5", SET)),
        then=[until_setting("retention.ms", "5"), _SEEN],
    ),
    _changes(
        "the same twice",
        resource(TOPIC, _T, setting("retention.ms", "5", SET)),
        resource(TOPIC, _T, setting("retention.ms", "6", SET)),
    ),
    Scenario(
        "a body that is cut",
        INCREMENTAL,
        [Ask(INCREMENTAL, {"resources": [resource(TOPIC, _T, setting("retention.ms", "5", SET))]}, cut=7)],
        [NewTopic()],
    ),
]

_RESOURCES = [
    Scenario(
        name,
        RESOURCES,
        [Ask(RESOURCES, {"resource_types": kinds})],
        [_CHANGED],
        versions=versions,
        unordered=["ListConfigResources.config_resources"],
    )
    for name, kinds, versions in (
        ("everything", [], range(2)),
        ("topics", [TOPIC], range(1, 2)),
        ("brokers", [BROKER], range(1, 2)),
        ("loggers", [BROKER_LOGGER], range(1, 2)),
        ("client metrics", [CLIENT_METRICS], range(1, 2)),
        ("groups", [GROUP], range(1, 2)),
        ("topics twice", [TOPIC, TOPIC], range(1, 2)),
        ("a kind that does not exist", [3], range(1, 2)),
        ("the unknown kind", [0], range(1, 2)),
        ("a good and a bad kind", [TOPIC, 77], range(1, 2)),
    )
]

SCENARIOS = [*_DESCRIBE, *_ALTER, *_INCREMENTAL, *_RESOURCES]
