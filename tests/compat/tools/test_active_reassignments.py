"""kafka-reassign-partitions beside Kafka's while something moves: throttles, --additional, --cancel, log_dirs."""

import pytest

from tests.compat.tools.comparing import REASSIGN, Side, Throttles, check_same, same_on_both_sides

SLOW = "1000"  # bytes per second: what moves does not arrive during a test
FAST = "100000000"


def _slow_topic(side: Side) -> str:
    topic = side.new_topic([(1, 2)])
    side.produce(topic, batches=4, batch_bytes=900_000)
    return topic


def _throttled(leaders: str, followers: str, rate: str) -> Throttles:
    replicas = {"leader.replication.throttled.replicas": leaders, "follower.replication.throttled.replicas": followers}
    rates = {"leader.replication.throttled.rate": rate, "follower.replication.throttled.rate": rate}
    return Throttles(replicas, dict.fromkeys((1, 2, 3), rates))


NOT_THROTTLED = Throttles({}, {})


def test_throttled_reassignment_is_listed_changed_and_cancelled(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = _slow_topic(side)
        plan = side.plan(topic, (3, 2))
        side.reassign("--execute", "--reassignment-json-file", plan, "--throttle", SLOW)
        side.wait_for_throttles(topic, _throttled("0:1,0:2", "0:3", SLOW))
        side.reassign("--list")
        side.run(REASSIGN, "--bootstrap-controller", side.cluster.bootstrap_controllers, "--list")
        side.reassign("--verify", "--reassignment-json-file", plan)
        side.reassign("--execute", "--reassignment-json-file", plan)
        side.reassign("--execute", "--additional", "--reassignment-json-file", plan, "--throttle", "2000")
        side.wait_for_throttles(topic, _throttled("0:1,0:2", "0:3", "2000"))
        side.reassign("--cancel", "--reassignment-json-file", plan, "--preserve-throttles")
        side.wait_for_throttles(topic, _throttled("0:1,0:2", "0:3", "2000"))
        side.reassign("--list")
        side.reassign("--cancel", "--reassignment-json-file", plan)
        side.wait_for_throttles(topic, NOT_THROTTLED)

    same_on_both_sides(sides, scenario)


def test_throttle_is_raised_until_the_reassignment_ends(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = _slow_topic(side)
        plan = side.plan(topic, (1, 2, 3))
        side.reassign("--execute", "--reassignment-json-file", plan, "--throttle", SLOW)
        side.reassign("--list")
        side.reassign("--execute", "--additional", "--reassignment-json-file", plan, "--throttle", FAST)
        side.wait_until_reassigned(topic)
        side.wait_for_throttles(topic, _throttled("0:1,0:2", "0:3", FAST))
        side.reassign("--verify", "--reassignment-json-file", plan)
        side.wait_for_throttles(topic, NOT_THROTTLED)

    same_on_both_sides(sides, scenario)


def test_replicas_are_moved_between_log_directories(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1, 2)])
        side.produce(topic)
        for folder in ("data", "data-2"):
            path = str(side.cluster.node(1).folder / folder)
            plan = side.plan(topic, (1, 2), log_dirs=[(path, "any")])
            side.reassign("--execute", "--reassignment-json-file", plan)
            side.wait_until_in(topic, 1, path)
            side.reassign("--verify", "--reassignment-json-file", plan)

    same_on_both_sides(sides, scenario)


def test_replica_is_placed_in_a_log_directory_of_its_new_broker(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = side.new_topic([(1,)])
        path = str(side.cluster.node(3).folder / "data-2")
        side.reassign("--execute", "--reassignment-json-file", side.plan(topic, (3,), log_dirs=[(path,)]))
        side.wait_until_reassigned(topic)
        side.wait_until_in(topic, 3, path)

    for side in sides:
        scenario(side)
        assert side.seen[-1].code == 0
        # Kafka creates the replica there at once, or moves it there a moment later.
        assert "Successfully started partition reassignment for TOPIC0-0" in side.seen[-1].output
        assert (
            "Successfully started moving log directory to node-3 for replica TOPIC0-0 with broker 3"
            in side.seen[-1].output
        )


def test_throttled_move_between_log_directories_is_cancelled(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = _slow_topic(side)
        current = side.log_dir_of(topic, 1)
        other = next(path for path in side.log_dirs(1) if path != current)
        plan = side.plan(topic, (1, 2), log_dirs=[(other, "any")])
        side.reassign("--execute", "--reassignment-json-file", plan, "--replica-alter-log-dirs-throttle", SLOW)
        side.wait_for_throttles(topic, Throttles({}, {1: {"replica.alter.log.dirs.io.max.bytes.per.second": SLOW}}))
        side.reassign("--verify", "--reassignment-json-file", plan)
        side.reassign("--cancel", "--reassignment-json-file", plan)
        side.wait_for_throttles(topic, NOT_THROTTLED)
        side.reassign("--verify", "--reassignment-json-file", plan)

    same_on_both_sides(sides, scenario)


def test_wrong_log_directory(sides: tuple[Side, Side]) -> None:
    for side in sides:
        topic = side.new_topic([(1,)])
        plan = side.plan(topic, (1,), log_dirs=[("/nowhere",)])
        done = side.reassign("--execute", "--reassignment-json-file", plan, "--timeout", "100")
        assert done.code == 1
        assert f"Error: Failed to alter dir for {topic}-0-1" in done.output
        assert "LogDirNotFoundException" in done.output


@pytest.mark.long
def test_verification_of_what_a_stopped_broker_has(sides: tuple[Side, Side]) -> None:
    """Its replicas are not in sync, and a reassignment to it cannot start."""
    cluster = sides[0].cluster
    topics = [side.new_topic([(1, 3)]) for side in sides]
    cluster.stop(3)
    try:
        for side, topic in zip(sides, topics, strict=True):
            side.reassign("--execute", "--reassignment-json-file", side.plan(topic, (3, 1)))
            side.reassign("--execute", "--reassignment-json-file", side.plan(topic, (1, 2)))
            side.wait_until_reassigned(topic)
            side.reassign("--verify", "--reassignment-json-file", side.plan(topic, (1, 2)))
            content = {"version": 1, "topics": [{"topic": topic}]}
            side.reassign("--generate", "--topics-to-move-json-file", side.file(content), "--broker-list", "1,3")
    finally:
        cluster.start(3)
    check_same(sides)
