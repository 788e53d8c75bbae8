"""OffsetCommit, OffsetFetch and OffsetDelete: how far groups have read."""

from tests.compat.responses.api import Api
from tests.compat.responses.placeholders import Own, Topic, TopicId
from tests.compat.responses.scenario import Ask, NewTopic, Scenario
from tests.compat.responses.scenarios.consumer_groups import ME, consumer
from tests.compat.responses.scenarios.group_requests import (
    GROUP,
    MEMBER,
    at,
    commit,
    committed,
    joined,
    protocols,
    stable,
    static_member,
    subscription,
)
from tests.compat.responses.scenarios.requests import UNKNOWN_ID, Body

COMMIT, FETCH, DELETE = Api.OFFSET_COMMIT, Api.OFFSET_FETCH, Api.OFFSET_DELETE
_T = [NewTopic(partitions=3)]
_MEMBER = {"member_id": MEMBER, "generation_id_or_member_epoch": 1}


def _fetched(*partitions: int, topic: object = None, topic_id: object = None, **more: object) -> Body:
    """One group's offsets, in the words of both forms of the request."""
    topics: list[Body] | None = [
        {
            "name": topic or Topic("t"),
            "topic_id": topic_id or TopicId("t"),
            "partition_indexes": list(partitions),
        }
    ]
    named: list[Body] | None = [{"name": topic or Topic("t"), "partition_indexes": list(partitions)}]
    if not partitions and topic is None:
        topics = named = None
    group_id = more.pop("group_id", GROUP)
    of_group = {name: more.pop(name) for name in ("member_id", "member_epoch") if name in more}
    return {
        "group_id": group_id,
        "topics": named,
        "groups": [{"group_id": group_id, "topics": topics, **of_group}],
        **more,
    }


def _see(*partitions: int) -> Ask:
    return Ask(FETCH, _fetched(*partitions), version=9)


def _commits(name: str, *partitions: Body, **body: object) -> Scenario:
    """One commit, and what is there afterwards."""
    given = body.pop("given", ())
    versions = body.pop("versions", None)
    return Scenario(
        name,
        COMMIT,
        [Ask(COMMIT, commit(*partitions, **body)), _see(0, 1, 2)],
        _T,
        given=given,  # type: ignore[arg-type]
        versions=versions,  # type: ignore[arg-type]
    )


_COMMIT = [
    _commits("of a consumer without a group", at(0, 5), at(2, 7, "text", 0)),
    _commits("without metadata", at(0, 5, None)),
    _commits("with metadata that is too long", at(0, 5, "m" * 4097), at(1, 6, "m" * 4096)),
    _commits("an offset below zero", at(0, -1)),
    _commits("an offset far below zero", at(0, -7)),
    _commits("an unknown partition", at(0, 5), at(9, 5)),
    _commits("a partition below zero", at(-1, 5)),
    _commits("the same partition twice", at(0, 5), at(0, 6)),
    Scenario(
        "an unknown topic",
        COMMIT,
        [
            Ask(
                COMMIT,
                commit(
                    at(0, 5),
                    topics=[
                        {"name": Topic("missing"), "topic_id": UNKNOWN_ID, "partitions": [at(0, 5)]},
                        {"name": Topic("t"), "topic_id": TopicId("t"), "partitions": [at(0, 6)]},
                    ],
                ),
            ),
            _see(0),
        ],
        _T,
        unordered=["OffsetCommit.topics"],
    ),
    Scenario("no topics", COMMIT, [Ask(COMMIT, commit(topics=[]))], _T),
    Scenario(
        "no partitions",
        COMMIT,
        [Ask(COMMIT, commit(topics=[{"name": Topic("t"), "topic_id": TopicId("t"), "partitions": []}]))],
        _T,
    ),
    _commits("an empty group id", group_id=""),
    _commits("with a retention time", retention_time=1_000_000, versions=range(2, 5)),
    _commits("of a member", given=stable(), **_MEMBER),
    _commits("of a member before its assignment is there", given=joined(), **_MEMBER),
    _commits("of an older generation", given=stable(), **{**_MEMBER, "generation_id_or_member_epoch": 0}),
    _commits("of a member that nobody knows", given=stable(), **{**_MEMBER, "member_id": "nobody"}),
    _commits("of nobody while there are members", given=stable()),
    _commits("of a generation of a group that is not there", generation_id_or_member_epoch=1, member_id="nobody"),
    _commits("of a static member", given=static_member(), group_instance_id="one", **_MEMBER),
    _commits(
        "of a static member under another id",
        given=static_member(),
        group_instance_id="one",
        **{**_MEMBER, "member_id": "nobody"},
        versions=range(7, COMMIT.last + 1),
    ),
    _commits("of a member of a consumer group", given=consumer(), member_id=ME, generation_id_or_member_epoch=2),
    _commits("of a later epoch", given=consumer(), member_id=ME, generation_id_or_member_epoch=3),
    _commits("of an older epoch", given=consumer(), member_id=ME, generation_id_or_member_epoch=0),
    _commits("of nobody in a consumer group", given=consumer()),
]

_BATCHED, _ALL = range(8, FETCH.last + 1), range(2, FETCH.last + 1)
_FETCH = [
    Scenario("what was committed", FETCH, [Ask(FETCH, _fetched(0, 1))], _T, given=[committed(at(0, 5, "m", 0))]),
    Scenario("all that was committed", FETCH, [Ask(FETCH, _fetched())], _T, given=[committed()], versions=_ALL),
    Scenario("where nothing was committed", FETCH, [Ask(FETCH, _fetched(0, 1))], _T),
    Scenario("all where nothing was committed", FETCH, [Ask(FETCH, _fetched())], _T, versions=_ALL),
    Scenario("an unknown partition", FETCH, [Ask(FETCH, _fetched(0, 9, -1))], _T, given=[committed()]),
    Scenario(
        "an unknown topic",
        FETCH,
        [Ask(FETCH, _fetched(0, topic=Topic("missing"), topic_id=UNKNOWN_ID))],
        _T,
        given=[committed()],
    ),
    Scenario("the same partition twice", FETCH, [Ask(FETCH, _fetched(0, 0))], _T, given=[committed()]),
    Scenario("an empty group id", FETCH, [Ask(FETCH, _fetched(0, group_id=""))], _T),
    Scenario(
        "only what is stable",
        FETCH,
        [Ask(FETCH, _fetched(0, require_stable=True))],
        _T,
        given=[committed()],
        versions=range(7, FETCH.last + 1),
    ),
    Scenario(
        "of several groups",
        FETCH,
        [
            Ask(
                FETCH,
                {
                    "groups": [
                        {
                            "group_id": group,
                            "topics": [{"name": Topic("t"), "topic_id": TopicId("t"), "partition_indexes": [0]}],
                        }
                        for group in (Own("x"), GROUP)
                    ]
                },
            )
        ],
        _T,
        given=[committed()],
        versions=_BATCHED,
    ),
    Scenario("of no groups", FETCH, [Ask(FETCH, {"groups": []})], versions=_BATCHED),
    Scenario(
        "as a member of a consumer group",
        FETCH,
        [Ask(FETCH, _fetched(0, member_id=ME, member_epoch=epoch)) for epoch in (2, 1, 3)],
        _T,
        given=consumer(),
        versions=range(9, FETCH.last + 1),
    ),
    Scenario(
        "as a member that nobody knows",
        FETCH,
        [Ask(FETCH, _fetched(0, member_id="nobody", member_epoch=1))],
        _T,
        given=consumer(),
        versions=range(9, FETCH.last + 1),
    ),
    Scenario(
        "as a member of a group that is not there",
        FETCH,
        [Ask(FETCH, _fetched(0, member_id="nobody", member_epoch=1))],
        _T,
        versions=range(9, FETCH.last + 1),
    ),
]


def _deleted(*partitions: int, topic: object = None, **more: object) -> Ask:
    topics = [{"name": topic or Topic("t"), "partitions": [{"partition_index": each} for each in partitions]}]
    return Ask(DELETE, {"group_id": GROUP, "topics": topics, **more})


_DELETE = [
    Scenario("what was committed", DELETE, [_deleted(0, 1), _see(0, 1, 2)], _T, given=[committed(at(0, 5), at(2, 6))]),
    Scenario("an unknown partition", DELETE, [_deleted(0, 9)], _T, given=[committed()]),
    Scenario("an unknown topic", DELETE, [_deleted(0, topic=Topic("missing"))], _T, given=[committed()]),
    Scenario("of a group that is not there", DELETE, [_deleted(0)], _T),
    Scenario("of an empty group id", DELETE, [_deleted(0, group_id="")], _T),
    Scenario("no topics", DELETE, [_deleted(topics=[])], _T, given=[committed()]),
    Scenario(
        "of a topic that a member reads",
        DELETE,
        [_deleted(0), _see(0)],
        _T,
        given=[committed(), *stable()],
    ),
    Scenario(
        "of a topic that no member reads",
        DELETE,
        [_deleted(0), _see(0)],
        _T,
        given=[*stable(protocols=protocols("range", metadata=subscription("else"))), committed(**_MEMBER)],
    ),
    Scenario(
        "of a group that is no consumer's",
        DELETE,
        [_deleted(0)],
        _T,
        given=[committed(), *joined(protocol_type="connect")],
    ),
    Scenario(
        "of a consumer group that reads it",
        DELETE,
        [_deleted(0)],
        _T,
        given=[*consumer(), committed(member_id=ME, generation_id_or_member_epoch=1)],
    ),
]

SCENARIOS = [*_COMMIT, *_FETCH, *_DELETE]
