"""kafka-streams-application-reset beside Kafka's, on Apache Kafka and on Kaspar."""

import itertools
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.offsets import CommittedOffset, commit_offsets, fetch_committed
from kaspar.records import Record, build_batch
from tests.compat.tools.comparing import STREAMS_RESET, run_ours, sentences
from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.kafka_tools import Done, KafkaTools
from tests.peers.kaspar import KasparProcess
from tests.peers.lone_members import LoneMember
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess
from tests.peers.raw_client import RawClient

T0_MS = 1_700_000_000_000
"""2023-11-14T22:13:20.000, the time of the first record; each is a second later than the one before."""
_TOPICS = re.compile(r"topics \[(.*)\]")
_MEMBERS = re.compile(r"members: \[\(memberId=.*\)\]\.")


class Application:
    """An application with an input topic of two partitions, the second of them empty. What its resets print is kept."""

    _numbers = itertools.count()

    def __init__(self, broker: BrokerProcess, folder: Path, kafka_tools: KafkaTools | None) -> None:
        self.broker = broker
        self.id = f"app-{next(Application._numbers):04}"
        self.input = f"{self.id}.input"
        self.seen: list[object] = []
        self._kafka_tools = kafka_tools
        self._folder = folder
        self.create(self.input, partitions=2)
        with Client(broker.bootstrap) as client:
            batch = build_batch([Record(T0_MS + 1000 * number, None, b"value") for number in range(10)])
            client.produce(self.input, 0, bytes(batch))

    def create(self, *topics: str, partitions: int = 1) -> None:
        with RawClient(self.broker.port) as client:
            for topic in topics:
                assert client.create_topic(topic, partitions=partitions) == ErrorCode.NONE
                wait_until(lambda topic=topic: self.broker.lead(topic, range(partitions)), f"{topic} is led")  # type: ignore[misc]

    def commit(self, offset: int, metadata: str = "") -> None:
        with Client(self.broker.bootstrap) as client:
            where = TopicPartition(self.input, 0)
            assert not commit_offsets(client, self.id, {where: offset}, metadata=metadata)

    def file(self, text: str) -> Path:
        path = self._folder / "plan.csv"
        path.write_text(text)
        return path

    def reset(self, *arguments: str | Path) -> Done:
        words = ("--bootstrap-server", self.broker.bootstrap, "--application-id", self.id, *arguments)
        if self._kafka_tools is None:
            done = run_ours(STREAMS_RESET, *words)
            assert "Traceback" not in done.errors
        else:
            done = self._kafka_tools.run(STREAMS_RESET.kafka_class, *words)
        self.seen.append((done.code, self._masked(done.output), self._masked(done.errors)))
        self.seen.append(self._masked(str(sorted(self.offsets().items()))))
        self.seen.append(sorted(self._masked(topic) for topic in self.topics()))
        return done

    def _masked(self, text: str) -> str:
        """Without the names and the orders that differ."""
        lines = sentences(text.replace(self.id, "APP")).split("\n")
        lines = [_TOPICS.sub(lambda found: f"topics {sorted(found[1].split(', '))}", line) for line in lines]
        lines = [_MEMBERS.sub("members: [...].", line) for line in lines]
        blocks = itertools.groupby(lines, key=lambda line: line.startswith(("Topic:", "New offset", "Partition ")))
        return "\n".join(itertools.chain(*(sorted(block) if is_list else block for is_list, block in blocks)))

    def offsets(self) -> dict[TopicPartition, CommittedOffset]:
        with Client(self.broker.bootstrap) as client:
            return fetch_committed(client, self.id)

    def topics(self) -> set[str]:
        with RawClient(self.broker.port) as client:
            return {topic for topic in client.topics() if topic.startswith(self.id)}


@pytest.fixture(scope="module", params=["on-kafka", "on-kaspar"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "on-kafka":
        unless_missing(kafka_jars)
    overrides = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    kind = ApacheKafka if request.param == "on-kafka" else KasparProcess
    with kind(folder, overrides=overrides) as running:
        yield running


@pytest.fixture
def applications(broker: BrokerProcess, kafka_tools: KafkaTools, tmp_path: Path) -> tuple[Application, Application]:
    """One for Kafka's command, and one for ours."""
    return Application(broker, tmp_path, kafka_tools), Application(broker, tmp_path, None)


def same_for_both(
    applications: tuple[Application, Application], scenario: Callable[[Application], None]
) -> tuple[Application, Application]:
    for each in applications:
        scenario(each)
    kafka, ours = applications
    for theirs, own in itertools.zip_longest(kafka.seen, ours.seen):
        assert own == theirs
    return applications


def test_input_is_reset_to_its_beginning_and_internal_topics_are_deleted(
    applications: tuple[Application, Application],
) -> None:
    def scenario(app: Application) -> None:
        app.commit(7, "kaspar-streams:1")
        app.create(
            f"{app.id}-store-changelog",
            f"{app.id}-by-name-repartition",
            f"{app.id}-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000003-topic",
            f"{app.id}-output",
            f"{app.id}.other-changelog",
        )
        for arguments in (("--dry-run",), ()):
            app.reset("--input-topics", app.input, *arguments)
        app.reset("--input-topics", app.input)

    _, ours = same_for_both(applications, scenario)
    assert ours.offsets()[TopicPartition(ours.input, 0)] == CommittedOffset(0, ""), "without its old metadata"
    assert ours.topics() == {ours.input, f"{ours.id}-output", f"{ours.id}.other-changelog"}


def test_every_target(applications: tuple[Application, Application]) -> None:
    def scenario(app: Application) -> None:
        for target in (
            ("--to-offset", "4"),
            ("--shift-by", "2"),
            ("--shift-by", "-100"),
            ("--to-offset", "0"),
            ("--to-offset", "10"),
            ("--to-offset", "99"),
            ("--to-latest",),
            ("--to-earliest",),
            ("--to-datetime", "2023-11-14T22:13:23.000"),
            ("--to-datetime", "2023-11-14T23:13:24.000+01:00"),
            ("--to-datetime", "2023-11-14T23:13:25.001+01"),
            ("--to-datetime", "2033-11-14T22:13:20.000"),
            ("--by-duration", f"PT{(time.time_ns() // 1_000_000 - T0_MS) // 1000 - 3 + 60}S"),
            ("--by-duration", "P1D"),
            ("--from-file", app.file(f"{app.input},0,3\n{app.input},1,0\n")),
        ):
            app.reset("--input-topics", app.input, *target)

    same_for_both(applications, scenario)


def test_shift_without_committed_offsets_is_from_the_end(applications: tuple[Application, Application]) -> None:
    same_for_both(
        applications, lambda app: app.seen.append(app.reset("--input-topics", app.input, "--shift-by", "-3").code)
    )


@pytest.mark.parametrize(
    "target",
    [
        ("--to-datetime", "yesterday"),
        ("--to-datetime", "2023-11-14T22:13:23"),
        ("--to-datetime", "2023-13-14T22:13:23.000"),
        ("--by-duration", "one day"),
        ("--by-duration", "PT"),
        ("--by-duration", "P"),
    ],
    ids=" ".join,
)
def test_wrong_times(target: tuple[str, ...], applications: tuple[Application, Application]) -> None:
    _, ours = same_for_both(
        applications, lambda app: app.seen.append(app.reset("--input-topics", app.input, *target).code)
    )
    assert not ours.offsets()


@pytest.mark.parametrize("text", ["", "{topic},0", "{topic},x,0", "{topic},0,x\n", "\n"])
def test_wrong_files(text: str, applications: tuple[Application, Application]) -> None:
    def scenario(app: Application) -> None:
        app.reset("--input-topics", app.input, "--from-file", app.file(text.replace("{topic}", app.input)))

    same_for_both(applications, scenario)


def test_file_with_other_partitions_resets_nothing(applications: tuple[Application, Application]) -> None:
    for text in ("{topic},0,3", "{topic},0,3\n{topic},1,0\nelsewhere,0,0"):
        for app in applications:
            done = app.reset("--input-topics", app.input, "--from-file", app.file(text.replace("{topic}", app.input)))
            assert done.code == 1
            assert not app.offsets()
    assert "partitions that are not of the input topics: elsewhere-0" in done.errors


def test_topics_that_are_not_found_are_skipped(applications: tuple[Application, Application]) -> None:
    def scenario(app: Application) -> None:
        app.create(f"{app.id}-a-changelog", f"{app.id}-between")
        app.reset("--input-topics", f"{app.id}-none", "--dry-run")
        app.reset("--input-topics", f"{app.id}-none,{app.input}", "--intermediate-topics", f"{app.id}-between,nowhere")
        app.reset("--intermediate-topics", f"{app.id}-between")
        app.reset()

    same_for_both(applications, scenario)


def test_specified_internal_topics_are_deleted_if_they_are_internal(
    applications: tuple[Application, Application],
) -> None:
    def scenario(app: Application) -> None:
        first, second = f"{app.id}-a-changelog", f"{app.id}-b-changelog"
        app.create(first, second)
        app.reset("--internal-topics", f"{first},{app.input}")
        app.reset("--internal-topics", first, "--dry-run")
        app.reset("--internal-topics", first)
        app.reset("--input-topics", second)

    same_for_both(applications, scenario)


def test_active_members_are_refused_or_removed(applications: tuple[Application, Application]) -> None:
    def scenario(app: Application) -> None:
        with RawClient(app.broker.port) as client:
            LoneMember(client, app.id, session_timeout_ms=60_000).join()
            app.reset("--input-topics", app.input)
            app.reset("--input-topics", app.input, "--force")

    _, ours = same_for_both(applications, scenario)
    assert ours.offsets()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dry-run",),
        ("--application-id", "x", "--zork"),
        ("--application-id",),
        ("--application-id", "x", "--to-latest", "--to-offset", "1"),
        ("--application-id", "x", "--shift-by", "1", "--from-file", "y"),
        ("--application-id", "x", "--config-file", "x", "--command-config", "x"),
    ],
    ids=" ".join,
)
def test_wrong_options(arguments: tuple[str, ...], kafka_tools: KafkaTools) -> None:
    theirs, ours = kafka_tools.run(STREAMS_RESET.kafka_class, *arguments), run_ours(STREAMS_RESET, *arguments)
    assert (ours.code, ours.output, sentences(ours.errors)) == (theirs.code, "", sentences(theirs.errors))


def test_deprecated_settings_file_is_used(applications: tuple[Application, Application]) -> None:
    same_for_both(
        applications, lambda app: app.seen.append(app.reset("--config-file", app.file("client.id=me\n")).code)
    )
