"""Transactions: their producers, partitions, offsets and ends, by the APIs of producers, brokers and tools."""

from tests.compat.responses.api import Api
from tests.compat.responses.batches import TRANSACTIONAL, Batch, numbered
from tests.compat.responses.placeholders import Learnt, Own, Topic
from tests.compat.responses.scenario import Ask, Eventually, NewTopic, Scenario
from tests.compat.responses.scenarios.group_requests import GROUP, ID, MEMBER, at, producer, stable, transactional
from tests.compat.responses.scenarios.requests import Body, fetch, list_offsets, produce

INIT, ADD, ADD_OFFSETS, COMMIT = (
    Api.INIT_PRODUCER_ID,
    Api.ADD_PARTITIONS_TO_TXN,
    Api.ADD_OFFSETS_TO_TXN,
    Api.TXN_OFFSET_COMMIT,
)
END, MARKERS, DESCRIBE, LIST = Api.END_TXN, Api.WRITE_TXN_MARKERS, Api.DESCRIBE_TRANSACTIONS, Api.LIST_TRANSACTIONS
_T = [NewTopic(partitions=3)]
_OLD = 4  # versions of AddPartitionsToTxn from here on are batched


def _init(timeout: int = 60_000, **more: object) -> Body:
    return {"transactional_id": ID, "transaction_timeout": timeout, **more}


_WITH_EPOCH = range(3, INIT.last + 1)
_INIT = [
    Scenario("a new transactional id", INIT, [Ask(INIT, _init()), Ask(INIT, _init())]),
    Scenario("the longest timeout", INIT, [Ask(INIT, _init(900_000))]),
    Scenario("a timeout that is too long", INIT, [Ask(INIT, _init(900_001))]),
    Scenario("a transaction with a timeout of zero", INIT, [Ask(INIT, _init(0))]),
    Scenario("a transaction with a negative timeout", INIT, [Ask(INIT, _init(-1))]),
    Scenario(
        "a bump of the epoch",
        INIT,
        [
            Ask(INIT, _init(**producer()), learn={"newer": "producer_epoch"}),
            Ask(INIT, _init(**producer())),
            Ask(INIT, _init(producer_id=Learnt("p"), producer_epoch=Learnt("newer"))),
        ],
        given=[transactional()],
        versions=_WITH_EPOCH,
    ),
    Scenario(
        "another producer's id",
        INIT,
        [Ask(INIT, _init(producer_id=Learnt("p", plus=500), producer_epoch=0))],
        given=[transactional()],
        versions=_WITH_EPOCH,
    ),
    Scenario(
        "a later epoch than there was",
        INIT,
        [Ask(INIT, _init(producer_id=Learnt("p"), producer_epoch=7))],
        given=[transactional()],
        versions=_WITH_EPOCH,
    ),
    Scenario(
        "an id and an epoch for a transactional id that is new",
        INIT,
        [Ask(INIT, _init(producer_id=4_000_000, producer_epoch=3))],
        versions=_WITH_EPOCH,
        masks=["InitProducerId.producer_id"],
    ),
]


def _partitions(*partitions: int, topic: object = None, **more: object) -> Body:
    """In the words of both forms of the request."""
    topics = [{"name": topic or Topic("t"), "partitions": list(partitions)}]
    one = {"transactional_id": ID, **producer(), "topics": topics, **more}
    old = {f"v3_and_below_{name}": value for name, value in one.items() if name != "verify_only"}
    return {**old, "transactions": [one]}


def _add(*partitions: int, **more: object) -> Ask:
    """Whatever the version under test."""
    return Ask(ADD, _partitions(*partitions, **more), version=3)


_UNTIL_COMPLETE = Eventually(
    DESCRIBE, {"transactional_ids": [ID]}, "transaction_states.0.transaction_state", "CompleteCommit"
)
_SEE = Ask(DESCRIBE, {"transactional_ids": [ID]}, version=0)

_ADD = [
    Scenario("to a transaction that begins", ADD, [Ask(ADD, _partitions(0, 1)), _SEE], _T, given=[transactional()]),
    Scenario("again", ADD, [Ask(ADD, _partitions(1, 2)), _SEE], _T, given=[transactional(), _add(0, 1)]),
    Scenario("an unknown partition", ADD, [Ask(ADD, _partitions(0, 9)), _SEE], _T, given=[transactional()]),
    Scenario("an unknown topic", ADD, [Ask(ADD, _partitions(0, topic=Topic("missing")))], _T, given=[transactional()]),
    Scenario("an older epoch", ADD, [Ask(ADD, _partitions(0, producer_epoch=-1))], _T, given=[transactional()]),
    Scenario("a later epoch", ADD, [Ask(ADD, _partitions(0, producer_epoch=9))], _T, given=[transactional()]),
    Scenario(
        "another producer's id",
        ADD,
        [Ask(ADD, _partitions(0, producer_id=Learnt("p", plus=700)))],
        _T,
        given=[transactional()],
    ),
    Scenario(
        "a transactional id that is not there", ADD, [Ask(ADD, _partitions(0, producer_id=1, producer_epoch=0))], _T
    ),
    Scenario(
        "an empty transactional id",
        ADD,
        [Ask(ADD, _partitions(0, transactional_id="", producer_id=1, producer_epoch=0))],
        _T,
    ),
    Scenario("no partitions", ADD, [Ask(ADD, _partitions())], _T, given=[transactional()]),
    Scenario(
        "only to verify",
        ADD,
        [Ask(ADD, _partitions(0, 1, verify_only=True)), Ask(ADD, _partitions(0, verify_only=True, producer_epoch=5))],
        _T,
        given=[transactional(), _add(0)],
        versions=range(_OLD, ADD.last + 1),
    ),
    Scenario(
        "only to verify where nothing is open",
        ADD,
        [Ask(ADD, _partitions(0, verify_only=True))],
        _T,
        given=[transactional()],
        versions=range(_OLD, ADD.last + 1),
    ),
    Scenario("of no transactions", ADD, [Ask(ADD, {"transactions": []})], versions=range(_OLD, ADD.last + 1)),
    Scenario(
        "of several transactions",
        ADD,
        [
            Ask(
                ADD,
                {
                    "transactions": [
                        {
                            "transactional_id": each,
                            **producer(name),
                            "verify_only": verify,
                            "topics": [{"name": Topic("t"), "partitions": [0]}],
                        }
                        for each, name, verify in ((ID, "p", False), (Own("other"), "q", True))
                    ]
                },
            )
        ],
        _T,
        given=[transactional(), transactional("q", transactional_id=Own("other"))],
        versions=range(_OLD, ADD.last + 1),
        unordered=["AddPartitionsToTxn.results_by_transaction"],
    ),
]


def _offsets(**more: object) -> Body:
    return {"transactional_id": ID, **producer(), "group_id": GROUP, **more}


_ADD_OFFSETS = [
    Scenario(
        "to a transaction that begins", ADD_OFFSETS, [Ask(ADD_OFFSETS, _offsets()), _SEE], given=[transactional()]
    ),
    Scenario("an older epoch", ADD_OFFSETS, [Ask(ADD_OFFSETS, _offsets(producer_epoch=-1))], given=[transactional()]),
    Scenario("a later epoch", ADD_OFFSETS, [Ask(ADD_OFFSETS, _offsets(producer_epoch=9))], given=[transactional()]),
    Scenario(
        "another producer's id",
        ADD_OFFSETS,
        [Ask(ADD_OFFSETS, _offsets(producer_id=Learnt("p", plus=700)))],
        given=[transactional()],
    ),
    Scenario(
        "a transactional id that is not there",
        ADD_OFFSETS,
        [Ask(ADD_OFFSETS, _offsets(producer_id=1, producer_epoch=0))],
    ),
    Scenario(
        "an empty transactional id",
        ADD_OFFSETS,
        [Ask(ADD_OFFSETS, _offsets(transactional_id="", producer_id=1, producer_epoch=0))],
    ),
    Scenario("an empty group id", ADD_OFFSETS, [Ask(ADD_OFFSETS, _offsets(group_id=""))], given=[transactional()]),
]


def _commit(*partitions: Body, topic: object = None, **more: object) -> Body:
    return {
        "transactional_id": ID,
        "group_id": GROUP,
        **producer(),
        "generation_id": -1,
        "member_id": "",
        "topics": [{"name": topic or Topic("t"), "partitions": list(partitions) or [at(0, 5)]}],
        **more,
    }


def _end(*, committed: bool = True, **more: object) -> Body:
    return {"transactional_id": ID, **producer(), "committed": committed, **more}


_ADDED = [transactional(), Ask(ADD_OFFSETS, _offsets(), version=3)]
_WITH_MEMBER = range(3, COMMIT.last + 1)


def _see_offsets(*, stable_only: bool = False) -> Ask:
    topics = [{"name": Topic("t"), "partition_indexes": [0, 1]}]
    body = {"groups": [{"group_id": GROUP, "topics": topics}], "require_stable": stable_only}
    return Ask(Api.OFFSET_FETCH, body, version=9)


_COMMIT = [
    Scenario(
        "seen when the transaction is committed",
        COMMIT,
        [
            Ask(COMMIT, _commit(at(0, 5), at(1, 6, None))),
            _see_offsets(),
            _see_offsets(stable_only=True),
            Ask(END, _end(), version=4),
            _UNTIL_COMPLETE,
            _see_offsets(stable_only=True),
        ],
        _T,
        given=_ADDED,
    ),
    Scenario("without the partition of the group", COMMIT, [Ask(COMMIT, _commit()), _SEE], _T, given=[transactional()]),
    Scenario("an unknown partition", COMMIT, [Ask(COMMIT, _commit(at(0, 5), at(9, 5)))], _T, given=_ADDED),
    Scenario("an unknown topic", COMMIT, [Ask(COMMIT, _commit(topic=Topic("missing")))], _T, given=_ADDED),
    Scenario("metadata that is too long", COMMIT, [Ask(COMMIT, _commit(at(0, 5, "m" * 4097)))], _T, given=_ADDED),
    Scenario("an older epoch", COMMIT, [Ask(COMMIT, _commit(producer_epoch=-1))], _T, given=_ADDED),
    Scenario("a later epoch", COMMIT, [Ask(COMMIT, _commit(producer_epoch=9))], _T, given=_ADDED),
    Scenario("an empty group id", COMMIT, [Ask(COMMIT, _commit(group_id=""))], _T, given=_ADDED),
    Scenario("no topics", COMMIT, [Ask(COMMIT, _commit(topics=[]))], _T, given=_ADDED),
    Scenario(
        "of a member",
        COMMIT,
        [Ask(COMMIT, _commit(generation_id=1, member_id=MEMBER))],
        _T,
        given=[*_ADDED, *stable()],
        versions=_WITH_MEMBER,
    ),
    Scenario(
        "of an older generation",
        COMMIT,
        [Ask(COMMIT, _commit(generation_id=0, member_id=MEMBER))],
        _T,
        given=[*_ADDED, *stable()],
        versions=_WITH_MEMBER,
    ),
    Scenario(
        "of a member that nobody knows",
        COMMIT,
        [Ask(COMMIT, _commit(generation_id=1, member_id="nobody"))],
        _T,
        given=[*_ADDED, *stable()],
        versions=_WITH_MEMBER,
    ),
    Scenario(
        "of a generation of a group that is not there",
        COMMIT,
        [Ask(COMMIT, _commit(generation_id=1, member_id="nobody"))],
        _T,
        given=_ADDED,
        versions=_WITH_MEMBER,
    ),
]


def _written(count: int = 2, sequence: int = 0) -> Ask:
    batch = Batch(
        records=numbered(count, start=sequence),
        attributes=TRANSACTIONAL,
        producer_id=Learnt("p"),
        producer_epoch=Learnt("p epoch"),
        base_sequence=sequence,
    )
    return Ask(Api.PRODUCE, produce(batch, transactional_id=ID), version=11)


_OPEN = [transactional(), _add(0), _written()]
_SEE_COMMITTED = Ask(Api.FETCH, fetch(isolation_level=1), version=12)
_STABLE_END = Ask(Api.LIST_OFFSETS, {**list_offsets(-1), "isolation_level": 1}, version=7)
_UNTIL_ABORTED = Eventually(
    DESCRIBE, {"transactional_ids": [ID]}, "transaction_states.0.transaction_state", "CompleteAbort"
)

_END = [
    Scenario(
        "a commit",
        END,
        [_SEE_COMMITTED, Ask(END, _end()), _UNTIL_COMPLETE, _SEE_COMMITTED, _STABLE_END, _SEE],
        _T,
        given=_OPEN,
    ),
    Scenario(
        "an abort",
        END,
        [Ask(END, _end(committed=False)), _UNTIL_ABORTED, _SEE_COMMITTED, _STABLE_END, _SEE],
        _T,
        given=_OPEN,
    ),
    Scenario("a commit again", END, [Ask(END, _end()), _UNTIL_COMPLETE, Ask(END, _end())], _T, given=_OPEN),
    Scenario(
        "an abort after a commit",
        END,
        [Ask(END, _end()), _UNTIL_COMPLETE, Ask(END, _end(committed=False))],
        _T,
        given=_OPEN,
    ),
    Scenario("a commit of nothing", END, [Ask(END, _end())], _T, given=[transactional()]),
    Scenario("an abort of nothing", END, [Ask(END, _end(committed=False))], _T, given=[transactional()]),
    Scenario(
        "a commit without records", END, [Ask(END, _end()), _UNTIL_COMPLETE, _SEE], _T, given=[transactional(), _add(0)]
    ),
    Scenario("an older epoch", END, [Ask(END, _end(producer_epoch=-1))], _T, given=_OPEN),
    Scenario("a later epoch", END, [Ask(END, _end(producer_epoch=9))], _T, given=_OPEN),
    Scenario("another producer's id", END, [Ask(END, _end(producer_id=Learnt("p", plus=700)))], _T, given=_OPEN),
    Scenario("a transactional id that is not there", END, [Ask(END, _end(producer_id=1, producer_epoch=0))]),
    Scenario("an empty transactional id", END, [Ask(END, _end(transactional_id="", producer_id=1, producer_epoch=0))]),
]


def _marker(
    *, committed: bool = True, topic: object = None, partitions: tuple[int, ...] = (0,), **more: object
) -> Body:
    return {
        **producer(),
        "transaction_result": committed,
        "topics": [{"name": topic or Topic("t"), "partition_indexes": list(partitions)}],
        "coordinator_epoch": 0,
        **more,
    }


def _marked(*markers: Body) -> Ask:
    return Ask(MARKERS, {"markers": list(markers)})


_SEE_PRODUCERS = Ask(Api.DESCRIBE_PRODUCERS, {"topics": [{"name": Topic("t"), "partition_indexes": [0]}]}, version=0)
_MARKERS = [
    Scenario(
        "a hanging transaction is ended by hand",
        MARKERS,
        [_SEE_PRODUCERS, _marked(_marker(committed=False)), _SEE_PRODUCERS, _SEE_COMMITTED],
        _T,
        given=_OPEN,
    ),
    Scenario("a commit", MARKERS, [_marked(_marker()), _SEE_PRODUCERS, _SEE_COMMITTED], _T, given=_OPEN),
    Scenario("where nothing is open", MARKERS, [_marked(_marker()), _SEE_PRODUCERS], _T, given=[transactional()]),
    Scenario(
        "an unknown partition",
        MARKERS,
        [_marked(_marker(partitions=(0, 9)))],
        _T,
        given=_OPEN,
        unordered=["WriteTxnMarkers.markers.*.topics.*.partitions"],
    ),
    Scenario("an unknown topic", MARKERS, [_marked(_marker(topic=Topic("missing")))], _T, given=_OPEN),
    Scenario(
        "an older coordinator",
        MARKERS,
        [_marked(_marker(coordinator_epoch=5)), _marked(_marker(coordinator_epoch=4))],
        _T,
        given=_OPEN,
    ),
    Scenario(
        "a later epoch of the producer", MARKERS, [_marked(_marker(producer_epoch=5)), _SEE_PRODUCERS], _T, given=_OPEN
    ),
    Scenario(
        "two markers",
        MARKERS,
        [_marked(_marker(), _marker(producer_id=Learnt("q"), producer_epoch=0))],
        _T,
        given=[*_OPEN, transactional("q", transactional_id=Own("other"))],
    ),
    Scenario("no markers", MARKERS, [_marked()]),
]


def _described(*ids: object) -> Ask:
    return Ask(DESCRIBE, {"transactional_ids": list(ids)})


_DESCRIBE = [
    Scenario("one that has not begun", DESCRIBE, [_described(ID)], given=[transactional()]),
    Scenario("an open one", DESCRIBE, [_described(ID)], _T, given=[transactional(), _add(0, 2)]),
    Scenario("one that is not there", DESCRIBE, [_described(ID)]),
    Scenario("an empty transactional id", DESCRIBE, [_described("")]),
    Scenario("several", DESCRIBE, [_described(Own("x"), ID)], given=[transactional()]),
    Scenario("the same twice", DESCRIBE, [_described(ID, ID)], given=[transactional()]),
    Scenario("none", DESCRIBE, [_described()]),
]


def _listed(*states: str, producers: list[object] | None = None, **more: object) -> Ask:
    return Ask(LIST, {"state_filters": list(states), "producer_id_filters": producers or [], **more})


_LIST = [
    Scenario("all", LIST, [_listed()], given=[transactional()]),
    Scenario("by state", LIST, [_listed("Ongoing"), _listed("Empty")], _T, given=[transactional(), _add(0)]),
    Scenario(
        "by a state that does not exist", LIST, [_listed("Fine", "Ongoing")], _T, given=[transactional(), _add(0)]
    ),
    Scenario("by producer", LIST, [_listed(producers=[Learnt("p")])], given=[transactional()]),
    Scenario("by a producer that is not there", LIST, [_listed(producers=[999_999])], given=[transactional()]),
    Scenario(
        "by duration",
        LIST,
        [_listed(duration_filter=60_000), _listed(duration_filter=0)],
        _T,
        given=[transactional(), _add(0)],
        versions=[1, 2],
    ),
    Scenario(
        "by pattern",
        LIST,
        [
            _listed(transactional_id_pattern="list-transactions-by-pattern.*id"),
            _listed(transactional_id_pattern="nothing"),
        ],
        given=[transactional()],
        versions=[2],
    ),
    Scenario("by a pattern that is none", LIST, [_listed(transactional_id_pattern="a(b")], versions=[2]),
    Scenario(
        "by an empty pattern", LIST, [_listed(transactional_id_pattern="")], given=[transactional()], versions=[2]
    ),
]

SCENARIOS = [*_INIT, *_ADD, *_ADD_OFFSETS, *_COMMIT, *_END, *_MARKERS, *_DESCRIBE, *_LIST]
