"""Fetch sessions beside a model: which partitions a session remembers and in which order, what is news, which epochs
are taken, and which sessions are evicted.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.fetch.sessions import EVICT_AFTER_S, FetchedPartition, FetchSession, FetchSessions, Key
from kaspar.protocol.shapes import PartitionData

PARTITIONS: st.SearchStrategy[Key] = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2))
ASKED = st.lists(st.tuples(PARTITIONS, st.integers(0, 9)), max_size=6)


def fetched(asked: list[tuple[Key, int]]) -> list[FetchedPartition]:
    return [FetchedPartition(topic, partition, offset, 100) for (topic, partition), offset in asked]


class Model:
    """One session as a client sees it: an ordered list of partitions and the offsets it asked for."""

    def __init__(self, session: FetchSession, asked: list[tuple[Key, int]], now: float) -> None:
        self.session = session
        self.epoch = 1
        self.wanted: dict[Key, int] = {}
        self.sent: dict[Key, int | None] = {}
        self.created = self.used = now
        self.ask(asked)

    def ask(self, asked: list[tuple[Key, int]]) -> None:
        for key, offset in asked:
            if key not in self.wanted:
                self.sent[key] = None
            self.wanted[key] = offset


class SessionsMachine(RuleBasedStateMachine):
    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.evictions = 0
        self.alive: list[Model] = []

    @initialize(slots=st.integers(0, 3))
    def start(self, slots: int) -> None:
        self.sessions = FetchSessions(slots, seed=1)

    @rule(seconds=st.sampled_from([1.0, EVICT_AFTER_S / 2, EVICT_AFTER_S]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=known, asked=ASKED, privileged=st.booleans())
    def full_fetch(self, asked: list[tuple[Key, int]], privileged: bool) -> object:
        is_full = len(self.alive) >= self.sessions.slots
        size = len({key for key, _ in asked})
        yielding = [model for model in self.alive if self.must_yield(model, privileged, size)]
        session = self.sessions.create(fetched(asked), privileged=privileged, uses_topic_ids=False, now=self.now)
        assert (session is not None) == (not is_full or bool(yielding))
        if session is None:
            return multiple()
        if is_full:
            gone = [model for model in self.alive if not self.is_there(model)]
            assert len(gone) == 1
            assert gone[0] in yielding
            self.alive.remove(gone[0])
            self.evictions += 1
        model = Model(session, asked, self.now)
        self.alive.append(model)
        return model

    def must_yield(self, model: Model, privileged: bool, size: int) -> bool:
        idle = self.now - model.used >= EVICT_AFTER_S
        if privileged and not model.session.privileged:
            return True
        if model.session.privileged and not privileged:
            return idle
        return idle or (self.now - model.created >= EVICT_AFTER_S and size > len(model.wanted))

    def is_there(self, model: Model) -> bool:
        return self.refusal_of(model, epoch=-7) == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    def refusal_of(self, model: Model, epoch: int) -> ErrorCode:
        with pytest.raises(Refused) as refusal:
            self.sessions.resume(model.session.session_id, epoch, uses_topic_ids=False, now=self.now)
        return refusal.value.code

    @rule(model=known, asked=ASKED, forgotten=st.lists(PARTITIONS, max_size=3), late=st.integers(0, 1))
    def incremental_fetch(self, model: Model, asked: list[tuple[Key, int]], forgotten: list[Key], late: int) -> None:
        if model not in self.alive:
            assert self.refusal_of(model, model.epoch) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            return
        if late:
            assert self.refusal_of(model, model.epoch - late) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return
        session = self.sessions.resume(model.session.session_id, model.epoch, uses_topic_ids=False, now=self.now)
        assert session is model.session
        model.used = self.now
        session.update(fetched(asked), forgotten)
        session.next_epoch()
        model.epoch += 1
        model.ask(asked)
        for key in forgotten:
            model.wanted.pop(key, None)

    @rule(model=known, data=st.data(), high_watermark=st.integers(0, 2), size=st.sampled_from([0, 0, 50]))
    def partition_sent(self, model: Model, data: st.DataObject, high_watermark: int, size: int) -> None:
        if model not in self.alive or not model.wanted:
            return
        key = data.draw(st.sampled_from(sorted(model.wanted, key=str)))
        failed = data.draw(st.booleans())
        entry = model.session.partitions[key]
        if failed:
            assert entry.note_sent(PartitionData(key[1], ErrorCode.NOT_LEADER_OR_FOLLOWER), 0)
            model.sent[key] = None
            return
        news = entry.note_sent(PartitionData(key[1], high_watermark=high_watermark, log_start_offset=0), size)
        assert news == (size > 0 or model.sent[key] != high_watermark)
        model.sent[key] = high_watermark
        if size:
            model.session.served([key])
            model.wanted[key] = model.wanted.pop(key)

    @rule(model=consumes(known))
    def closed(self, model: Model) -> None:
        self.sessions.close(model.session.session_id)
        if model in self.alive:
            self.alive.remove(model)

    @invariant()
    def sessions_are_as_the_model_says(self) -> None:
        if not hasattr(self, "sessions"):
            return
        assert len(self.sessions) == len(self.alive) <= self.sessions.slots
        assert self.sessions.evictions == self.evictions
        assert self.sessions.partition_count == sum(len(model.wanted) for model in self.alive)
        for model in self.alive:
            remembered = {key: entry.fetch_offset for key, entry in model.session.partitions.items()}
            assert list(remembered.items()) == list(model.wanted.items())


TestSessions = SessionsMachine.TestCase
TestSessions.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
