"""DescribeClientQuotas and AlterClientQuotas. Entities have names of their own, so nobody is throttled by them."""

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Own
from tests.compat.responses.scenario import Ask, Eventually, Scenario, Step
from tests.compat.responses.scenarios.requests import Body

DESCRIBE, ALTER = Api.DESCRIBE_CLIENT_QUOTAS, Api.ALTER_CLIENT_QUOTAS
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
USER, CLIENT, IP = "user", "client-id", "ip"
_U, _C = Own("u"), Own("c")
_VALUES = ("DescribeClientQuotas.entries.*.values",)  # in the order of a hash table


def _entity(**names: object) -> list[Body]:
    return [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in names.items()]


def _set(key: str, value: float) -> Body:
    return {"key": key, "value": value, "remove": False}


def _remove(key: str) -> Body:
    return {"key": key, "value": 0.0, "remove": True}


def _entry(entity: list[Body], *ops: Body) -> Body:
    return {"entity": entity, "ops": list(ops)}


def _alter(*entries: Body, validate_only: bool = False, version: int | None = None) -> Ask:
    return Ask(ALTER, {"entries": list(entries), "validate_only": validate_only}, version=version)


def _component(kind: str, how: int, name: object = None) -> Body:
    return {"entity_type": kind, "match_type": how, "match": name}


def _describe(*components: Body, strict: bool = False) -> Ask:
    return Ask(DESCRIBE, {"components": list(components), "strict": strict}, version=1)


def _until(*components: Body, count: int) -> Eventually:
    return Eventually(DESCRIBE, {"components": list(components), "strict": False}, "entries.length", count)


_OF_USER = _component(USER, EXACT, _U)
_ONE = _entry(_entity(user=_U), _set("producer_byte_rate", 1024.0), _set("request_percentage", 12.5))
_BOTH = _entry(_entity(user=_U, client_id=_C), _set("consumer_byte_rate", 7.0))
_BOTH_DEFAULT = _entry(_entity(user=_U, client_id=None), _set("controller_mutation_rate", 2.5))


def _refused(name: str, *entries: Body) -> Scenario:
    return Scenario(name, ALTER, [_alter(*entries)])


_ALTER = [
    Scenario(
        "set, seen, changed and removed",
        ALTER,
        [
            _alter(_ONE),
            _until(_OF_USER, count=1),
            _describe(_OF_USER),
            _alter(_entry(_entity(user=_U), _remove("producer_byte_rate"), _set("request_percentage", 3.0))),
            Eventually(
                DESCRIBE, {"components": [_OF_USER], "strict": False}, "entries.0.values.length", 1, compare=True
            ),
            _alter(_entry(_entity(user=_U), _remove("request_percentage"), _remove("never_set"))),
            _until(_OF_USER, count=0),
        ],
        unordered=_VALUES,
    ),
    Scenario("only to validate", ALTER, [_alter(_ONE, validate_only=True), _describe(_OF_USER)]),
    Scenario("nothing", ALTER, [_alter()]),
    Scenario("an entity without operations", ALTER, [_alter(_entry(_entity(user=_U)))]),
    _refused("an empty entity", _entry([], _set("producer_byte_rate", 1.0))),
    _refused("an unknown type of entity", _entry([{"entity_type": "group", "entity_name": _U}], _set("x", 1.0))),
    _refused("an empty name", _entry(_entity(user=""), _set("producer_byte_rate", 1.0))),
    _refused("an address with a user", _entry(_entity(user=_U, ip="10.0.0.1"), _set("connection_creation_rate", 1.0))),
    _refused("an unknown key", _entry(_entity(user=_U), _set("no_such_rate", 1.0))),
    _refused("a key of addresses for a user", _entry(_entity(user=_U), _set("connection_creation_rate", 1.0))),
    _refused("a key of users for an address", _entry(_entity(ip="10.0.0.1"), _set("producer_byte_rate", 1.0))),
    _refused("zero", _entry(_entity(user=_U), _set("producer_byte_rate", 0.0))),
    _refused("below zero", _entry(_entity(user=_U), _set("request_percentage", -1.0))),
    _refused("a fraction of a byte", _entry(_entity(user=_U), _set("producer_byte_rate", 1.5))),
    _refused("more than a long", _entry(_entity(user=_U), _set("producer_byte_rate", 1e19))),
    _refused("more than an int", _entry(_entity(ip="10.0.0.1"), _set("connection_creation_rate", 3e9))),
    _refused("a fraction of a connection", _entry(_entity(ip="10.0.0.1"), _set("connection_creation_rate", 0.5))),
    _refused("not an address", _entry(_entity(ip="not an address"), _set("connection_creation_rate", 1.0))),
    Scenario(
        "a host name",
        ALTER,
        [_alter(_entry(_entity(ip="localhost"), _set("connection_creation_rate", 1e6)), validate_only=True)],
    ),
    _refused("a key twice", _entry(_entity(user=_U), _set("producer_byte_rate", 1.0), _remove("producer_byte_rate"))),
    Scenario(
        "an entity twice",
        ALTER,
        [
            _alter(
                _entry(_entity(user=_U), _set("producer_byte_rate", 1.0)),
                _entry(_entity(user=_U), _set("producer_byte_rate", 2.0)),
            ),
            _until(_OF_USER, count=1),
            _describe(_OF_USER),
        ],
    ),
    Scenario(
        "an address",
        ALTER,
        [
            _alter(_entry(_entity(ip="10.9.8.7"), _set("connection_creation_rate", 100.0))),
            _until(_component(IP, EXACT, "10.9.8.7"), count=1),
            _describe(_component(IP, EXACT, "10.9.8.7")),
            _alter(_entry(_entity(ip="10.9.8.7"), _remove("connection_creation_rate"))),
            _until(_component(IP, EXACT, "10.9.8.7"), count=0),
        ],
    ),
]

_THERE: list[Step] = [_alter(_ONE, _BOTH, _BOTH_DEFAULT, version=1), _until(_OF_USER, count=3)]


def _seen(name: str, *components: Body, strict: bool = False) -> Scenario:
    ask = Ask(DESCRIBE, {"components": list(components), "strict": strict})
    return Scenario(name, DESCRIBE, [ask], given=_THERE, unordered=_VALUES, shared=True)


_DESCRIBE = [
    _seen("a user and a client", _OF_USER, _component(CLIENT, EXACT, _C)),
    _seen("a user and the default client", _OF_USER, _component(CLIENT, DEFAULT)),
    _seen("a user alone", _OF_USER, strict=True),
    _seen("a client of any user", _component(CLIENT, EXACT, _C), _component(USER, SPECIFIED)),
    _seen("a client, strictly", _component(CLIENT, EXACT, _C), strict=True),
    _seen("somebody without quotas", _component(USER, EXACT, Own("other"))),
    _seen("nothing, strictly", strict=True),
    _seen("an empty type", _component("", EXACT, "x")),
    _seen("an unknown type", _component("group", EXACT, "x")),
    _seen("a type twice", _OF_USER, _component(USER, DEFAULT)),
    _seen("an address and a user", _OF_USER, _component(IP, SPECIFIED)),
    _seen("a name that is null", _component(USER, EXACT, None)),
    _seen("the default with a name", _component(USER, DEFAULT, "x")),
    _seen("any with a name", _component(USER, SPECIFIED, "x")),
    _seen("an unknown way to match", _component(USER, 9)),
]

SCENARIOS = [*_ALTER, *_DESCRIBE]
