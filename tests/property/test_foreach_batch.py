"""Programs that write in foreachBatch, changed between their runs and killed at any step: when Spark takes a batch for
done, every write that its program made for it is published, once.

Each write has a row of its own. A run that is refused or killed is followed by another, of any of the programs.
"""

import random
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.errors import KasparError
from kaspar.exactly_once.errors import NameTaken
from kaspar.exactly_once.leftovers import end_leftovers
from kaspar.exactly_once.names import BatchName
from kaspar.exactly_once.ownership import release
from tests.property.exactly_once_model import Cluster, Killed, Row
from tests.unit.spark.exactly_once.programs import QUERY, TOPICS, Program

RUNS = 12
MOST_STEPS = 60


class Run(Program):
    """Of the stream with that number."""

    def __init__(self, cluster: Cluster, name: str, stream: int) -> None:
        super().__init__(cluster, name, stream=f"stream {stream}")
        self.stream = stream
        self.part = 0
        """Where a topic is written to in several blocks: in which."""
        self.declared: set[Row] = set()
        """What the program writes for the batch that it is at."""

    def row(self, batch: BatchName, topic: str) -> Row:
        return self.stream * 1000 + batch.batch_id, TOPICS.index(topic) + 10 * (batch.query != QUERY) + 100 * self.part

    def block_of(
        self, batch_id: int, topics: list[str], query: str = QUERY, inside: Callable[[], object] = int
    ) -> None:
        with self.block(batch_id, query) as batch:
            for topic in topics:
                self.declared.add(self.row(batch.name, topic))
                self.write(batch, topic)
            inside()


def one_block(run: Run, batch_id: int, topics: list[str]) -> None:
    run.block_of(batch_id, topics)


def block_after_block(run: Run, batch_id: int, topics: list[str]) -> None:
    for topic in topics:
        run.block_of(batch_id, [topic])


def blocks_with_the_same_topics(run: Run, batch_id: int, topics: list[str]) -> None:
    for run.part in range(2):
        run.block_of(batch_id, topics)


def block_in_block(run: Run, batch_id: int, topics: list[str]) -> None:
    run.block_of(batch_id, topics[:1], inside=lambda: run.block_of(batch_id, topics[1:]))


def a_name_for_each(run: Run, batch_id: int, topics: list[str]) -> None:
    run.block_of(batch_id, topics[:1])
    for topic in topics[1:]:
        run.block_of(batch_id, [topic], query=f"{QUERY}-{topic}")


def tried_again(run: Run, batch_id: int, topics: list[str]) -> None:
    try:
        run.block_of(batch_id, topics)
    except KasparError:
        run.block_of(batch_id, topics)


PROGRAMS = (
    one_block,
    one_block,
    block_after_block,
    blocks_with_the_same_topics,
    block_in_block,
    a_name_for_each,
    tried_again,
)


class Story:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster()
        self.expected: set[Row] = set()
        self.stream = 0
        self.committed = -1
        """The last batch in Spark's own log of commits."""

    def play(self) -> None:
        for number in range(RUNS):
            self.run(Run(self.cluster, f"run {number}", self.stream), self.rng.choice(PROGRAMS))
            self.check()
            self.meanwhile()
            if self.rng.random() < 0.1:
                self.lose_the_checkpoint(number)
        run = Run(self.cluster, "last", self.stream)
        end_leftovers(self.cluster.process("command").participants, QUERY, accept_loss=True)
        one_block(run, self.committed + 1, [])
        self.check()
        ended = {name for name in self.cluster.open_ids() if f":{QUERY}:" in name}
        assert not ended, "the last run has ended all that was left"

    def run(self, run: Run, program: Callable[[Run, int, list[str]], None]) -> None:
        topics = self.rng.sample(TOPICS, self.rng.randint(0, len(TOPICS)))
        for batch_id in range(self.committed + 1, self.committed + 1 + self.rng.randint(1, 3)):
            run.declared.clear()
            run.fuse.left = self.rng.choice([-1, self.rng.randrange(MOST_STEPS)])
            try:
                program(run, batch_id, topics)
            except (Killed, KasparError):
                return
            finally:
                run.fuse.left = -1
            self.expected |= run.declared
            if self.rng.random() < 0.2:
                return  # killed before Spark has written down that the batch is done
            self.committed = batch_id

    def meanwhile(self) -> None:
        while self.cluster.on_their_way and self.rng.random() < 0.7:
            records = self.cluster.on_their_way.pop()
            if self.rng.random() < 0.7:
                self.cluster.store(records)
        if self.rng.random() < 0.5:
            self.cluster.compact(self.rng.randint(0, self.cluster.next_offset))

    def lose_the_checkpoint(self, number: int) -> None:
        """A new one is refused the name as long as it is not released."""
        known = self.cluster.process("reader").participants.log.read_to_end(QUERY).origin
        self.stream += 1
        self.committed = -1
        if known is None or known.is_released:
            return
        try:
            one_block(Run(self.cluster, f"refused {number}", self.stream), 0, ["large"])
        except NameTaken:
            for query in (QUERY, *(f"{QUERY}-{topic}" for topic in TOPICS)):
                release(self.cluster.process(f"command {number}").participants, query)
            return
        raise AssertionError("the name was given to another stream")

    def check(self) -> None:
        assert all(times == 1 for times in self.cluster.visible.values()), self.cluster.visible
        assert self.expected <= self.cluster.visible.keys(), Counter(self.expected) - self.cluster.visible


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, (1 << 32) - 1))
def test_what_a_program_has_written_in_a_batch_that_is_done_is_published_once(seed: int) -> None:
    Story(seed).play()
