"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: groups of the classic protocol."""

from tests.compat.responses.api import Api
from tests.compat.responses.scenario import Ask, Scenario
from tests.compat.responses.scenarios.group_requests import (
    GROUP,
    MEMBER,
    join,
    joined,
    protocols,
    stable,
    static_member,
    sync,
)
from tests.compat.responses.scenarios.requests import Body

JOIN, SYNC, HEARTBEAT, LEAVE = Api.JOIN_GROUP, Api.SYNC_GROUP, Api.HEARTBEAT, Api.LEAVE_GROUP
_MEMBER_ID_FIRST = range(4, JOIN.last + 1)
_STATIC = range(5, JOIN.last + 1)


def _joins(name: str, *, versions: range | None = None, **body: object) -> Scenario:
    """One request for a group that is not there yet."""
    return Scenario(name, JOIN, [Ask(JOIN, join(**body))], versions=versions)


_JOIN = [
    Scenario(
        "a new group",
        JOIN,
        [Ask(JOIN, join(), learn={"member": "member_id"}), Ask(JOIN, join(MEMBER))],
    ),
    Scenario(
        "the member id that was given is used once",
        JOIN,
        [
            Ask(JOIN, join(), learn={"member": "member_id"}),
            Ask(JOIN, join(MEMBER)),
            Ask(JOIN, join(MEMBER)),
            Ask(HEARTBEAT, {"group_id": GROUP, "generation_id": 2, "member_id": MEMBER}, version=4),
        ],
        versions=_MEMBER_ID_FIRST,
    ),
    Scenario(
        "with other protocols than before",
        JOIN,
        [Ask(JOIN, join(MEMBER, protocols=protocols("roundrobin", "range")))],
        given=stable(),
    ),
    Scenario("of another protocol type", JOIN, [Ask(JOIN, join(MEMBER, protocol_type="connect"))], given=stable()),
    Scenario("without a protocol in common", JOIN, [Ask(JOIN, join(protocols=protocols("other")))], given=stable()),
    Scenario("as a member that nobody knows", JOIN, [Ask(JOIN, join("nobody"))], given=stable()),
    _joins("a group that is not there, as somebody", member_id="nobody"),
    _joins("an empty group id", group_id=""),
    _joins("a session that is too short", session_timeout=5_999),
    _joins("the shortest session", session_timeout=6_000),
    _joins("a session that is too long", session_timeout=1_800_001),
    _joins("a session below zero", session_timeout=-1),
    _joins("a rebalance timeout below zero", rebalance_timeout=-1),
    _joins("no protocols", protocols=[]),
    _joins("an empty protocol type", protocol_type=""),
    _joins("a protocol without a name", protocols=protocols("")),
    _joins("the same protocol twice", protocols=protocols("range", "range")),
    _joins("metadata that no consumer sends", protocols=protocols("range", metadata=b"\xff")),
    _joins("of a type that is no consumer's", protocol_type="connect", protocols=protocols("sessioned")),
    _joins("a reason", versions=range(8, JOIN.last + 1), reason="because"),
    _joins("a static member", versions=_STATIC, group_instance_id="one"),
    _joins("an instance id that is empty", versions=_STATIC, group_instance_id=""),
    Scenario(
        "a static member comes back",
        JOIN,
        [Ask(JOIN, join(group_instance_id="one"), learn={"newer": "member_id"})],
        given=static_member(),
        versions=_STATIC,
    ),
    Scenario(
        "a static member comes back with other protocols",
        JOIN,
        [Ask(JOIN, join(group_instance_id="one", protocols=protocols("range", metadata=b"\x00")))],
        given=static_member(),
        versions=_STATIC,
    ),
    Scenario(
        "a static member that was replaced",
        JOIN,
        [Ask(JOIN, join(MEMBER, group_instance_id="one"))],
        given=[*static_member(), Ask(JOIN, join(group_instance_id="one"), version=9)],
        versions=_STATIC,
    ),
    Scenario(
        "a static member under an id that nobody knows",
        JOIN,
        [Ask(JOIN, join("nobody", group_instance_id="one")), Ask(JOIN, join("nobody", group_instance_id="two"))],
        given=static_member(),
        versions=_STATIC,
    ),
    Scenario("a body that is cut", JOIN, [Ask(JOIN, join(), cut=3)]),
]

_SYNC = [
    Scenario("the leader's assignments", SYNC, [Ask(SYNC, sync())], given=joined()),
    Scenario("asked again", SYNC, [Ask(SYNC, sync()), Ask(SYNC, sync(assignments=[]))], given=joined()),
    Scenario("no assignments", SYNC, [Ask(SYNC, sync(assignments=[])), Ask(SYNC, sync())], given=joined()),
    Scenario(
        "assignments for somebody else",
        SYNC,
        [Ask(SYNC, sync(assignments=[{"member_id": "nobody", "assignment": b"x"}]))],
        given=joined(),
    ),
    Scenario(
        "the same member twice",
        SYNC,
        [Ask(SYNC, sync(assignments=[{"member_id": MEMBER, "assignment": text} for text in (b"a", b"b")]))],
        given=joined(),
    ),
    Scenario("an older generation", SYNC, [Ask(SYNC, sync(generation=0))], given=joined()),
    Scenario("a later generation", SYNC, [Ask(SYNC, sync(generation=2))], given=joined()),
    Scenario("a generation below zero", SYNC, [Ask(SYNC, sync(generation=-1))], given=joined()),
    Scenario("a member that nobody knows", SYNC, [Ask(SYNC, sync("nobody"))], given=joined()),
    Scenario("an empty member id", SYNC, [Ask(SYNC, sync(""))], given=joined()),
    Scenario("a group that is not there", SYNC, [Ask(SYNC, sync("nobody"))]),
    Scenario("an empty group id", SYNC, [Ask(SYNC, sync("nobody", group_id=""))]),
    Scenario("another protocol", SYNC, [Ask(SYNC, sync(protocol_name="roundrobin"))], given=joined()),
    Scenario("another protocol type", SYNC, [Ask(SYNC, sync(protocol_type="connect"))], given=joined()),
    Scenario(
        "no protocol", SYNC, [Ask(SYNC, sync(protocol_name=None, protocol_type=None))], given=joined(), versions=[5]
    ),
    Scenario("a dynamic member with an instance id", SYNC, [Ask(SYNC, sync(group_instance_id="x"))], given=joined()),
    Scenario(
        "a static member that was replaced",
        SYNC,
        [Ask(SYNC, sync(group_instance_id="one"))],
        given=[*static_member(), Ask(JOIN, join(group_instance_id="one"), version=9)],
        versions=range(3, SYNC.last + 1),
    ),
]


def _beat(member_id: object = MEMBER, generation: int = 1, **more: object) -> Body:
    return {"group_id": GROUP, "generation_id": generation, "member_id": member_id, **more}


_HEARTBEAT = [
    Scenario("of a member", HEARTBEAT, [Ask(HEARTBEAT, _beat())], given=stable()),
    Scenario("before the assignments are there", HEARTBEAT, [Ask(HEARTBEAT, _beat())], given=joined()),
    Scenario("of an older generation", HEARTBEAT, [Ask(HEARTBEAT, _beat(generation=0))], given=stable()),
    Scenario("of a later generation", HEARTBEAT, [Ask(HEARTBEAT, _beat(generation=2))], given=stable()),
    Scenario("of a member that nobody knows", HEARTBEAT, [Ask(HEARTBEAT, _beat("nobody"))], given=stable()),
    Scenario("of a group that is not there", HEARTBEAT, [Ask(HEARTBEAT, _beat("nobody"))]),
    Scenario(
        "of a group without members",
        HEARTBEAT,
        [Ask(HEARTBEAT, _beat())],
        given=[*stable(), Ask(LEAVE, {"group_id": GROUP, "member_id": MEMBER}, version=0)],
    ),
    Scenario("an empty group id", HEARTBEAT, [Ask(HEARTBEAT, _beat("nobody", group_id=""))]),
    Scenario(
        "of a member with a pending id",
        HEARTBEAT,
        [Ask(HEARTBEAT, _beat(generation=-1))],
        given=[Ask(JOIN, join(), version=4, learn={"member": "member_id"})],
    ),
    Scenario("of a static member", HEARTBEAT, [Ask(HEARTBEAT, _beat(group_instance_id="one"))], given=static_member()),
    Scenario(
        "of a static member under another id",
        HEARTBEAT,
        [Ask(HEARTBEAT, _beat("nobody", group_instance_id="one")), Ask(HEARTBEAT, _beat(group_instance_id="two"))],
        given=static_member(),
        versions=range(3, HEARTBEAT.last + 1),
    ),
]


def _leave(*members: Body, **more: object) -> Body:
    """At older versions the only one."""
    identities = list(members) or [{"member_id": MEMBER}]
    return {"group_id": GROUP, "member_id": identities[0].get("member_id", ""), "members": identities, **more}


_BATCHED = range(3, LEAVE.last + 1)
_LEAVE = [
    Scenario(
        "the only member",
        LEAVE,
        [Ask(LEAVE, _leave()), Ask(Api.DESCRIBE_GROUPS, {"groups": [GROUP]}, version=5)],
        given=stable(),
    ),
    Scenario("twice", LEAVE, [Ask(LEAVE, _leave()), Ask(LEAVE, _leave())], given=stable()),
    Scenario(
        "a member with a pending id",
        LEAVE,
        [Ask(LEAVE, _leave())],
        given=[Ask(JOIN, join(), version=4, learn={"member": "member_id"})],
    ),
    Scenario("a member that nobody knows", LEAVE, [Ask(LEAVE, _leave({"member_id": "nobody"}))], given=stable()),
    Scenario("a group that is not there", LEAVE, [Ask(LEAVE, _leave({"member_id": "nobody"}))]),
    Scenario("an empty group id", LEAVE, [Ask(LEAVE, _leave({"member_id": "nobody"}, group_id=""))]),
    Scenario(
        "some known members and some unknown",
        LEAVE,
        [
            Ask(
                LEAVE,
                _leave({"member_id": "nobody"}, {"member_id": MEMBER}, {"member_id": "", "group_instance_id": "x"}),
            )
        ],
        given=stable(),
        versions=_BATCHED,
    ),
    Scenario("nobody", LEAVE, [Ask(LEAVE, {"group_id": GROUP, "members": []})], given=stable(), versions=_BATCHED),
    Scenario(
        "a static member by its instance id",
        LEAVE,
        [Ask(LEAVE, _leave({"member_id": "", "group_instance_id": "one"}))],
        given=static_member(),
        versions=_BATCHED,
    ),
    Scenario(
        "a static member under another id",
        LEAVE,
        [Ask(LEAVE, _leave({"member_id": "nobody", "group_instance_id": "one"}))],
        given=static_member(),
        versions=_BATCHED,
    ),
    Scenario(
        "with a reason",
        LEAVE,
        [Ask(LEAVE, _leave({"member_id": MEMBER, "reason": "why"}))],
        given=stable(),
        versions=[5],
    ),
]

SCENARIOS = [*_JOIN, *_SYNC, *_HEARTBEAT, *_LEAVE]
