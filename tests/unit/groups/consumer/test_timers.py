"""Time in a consumer group: sessions, the time to give partitions up, and settings that change both."""

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.groups import GroupSettings
from kaspar.groups.consumer.departures import TRY_AGAIN_AFTER_MS
from tests.unit.groups.consumer.shell import AT_ONCE, CONSUMER_SESSION_MS, HEARTBEAT_MS, ConsumerShell
from tests.unit.groups.consumer.test_heartbeat import ALL
from tests.unit.groups.shell import GROUP, REBALANCE_MS


def test_a_member_that_falls_silent_is_removed_when_its_session_ends() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    shell.settle(first, second)
    for _ in range(CONSUMER_SESSION_MS // HEARTBEAT_MS):
        shell.advance(HEARTBEAT_MS)
        first.heartbeat()
    assert set(shell.membership.state.members) == {"a"}
    first.heartbeat()
    assert first.partitions == ALL


def test_sessions_restart_after_a_restart() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    shell.advance(CONSUMER_SESSION_MS - 1)
    shell.crash()
    shell.advance(CONSUMER_SESSION_MS - 1)
    assert "a" in shell.membership.state.members
    shell.advance(1)
    assert shell.state == "Empty"


def test_a_session_that_the_log_refused_to_end_ends_a_moment_later() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    shell.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.advance(CONSUMER_SESSION_MS)
    assert "a" in shell.membership.state.members
    shell.refuses = None
    shell.advance(TRY_AGAIN_AFTER_MS)
    assert shell.state == "Empty"


def test_a_member_that_the_log_refused_at_first_has_a_session_when_it_comes() -> None:
    shell = ConsumerShell()
    other = shell.consumer("other").join()
    shell.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    shell.consumer("a").join()
    shell.refuses = None
    for _ in range(CONSUMER_SESSION_MS // HEARTBEAT_MS):
        shell.advance(HEARTBEAT_MS)
        other.heartbeat()
    shell.consumer("a").join()
    for _ in range(CONSUMER_SESSION_MS // HEARTBEAT_MS):
        shell.advance(HEARTBEAT_MS)
        other.heartbeat()
    assert set(shell.membership.state.members) == {"other"}


def test_a_wall_clock_that_jumps_ends_no_session() -> None:
    shell = ConsumerShell()
    shell.consumer("a").join()
    shell.now = shell.now._replace(wall_ms=shell.now.wall_ms + 10 * CONSUMER_SESSION_MS)
    shell.advance(HEARTBEAT_MS)
    assert "a" in shell.membership.state.members


def test_a_member_that_does_not_give_up_its_partitions_is_removed() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    first.heartbeat()
    for _ in range(REBALANCE_MS // HEARTBEAT_MS):
        assert "a" in shell.membership.state.members
        shell.advance(HEARTBEAT_MS)
        shell.beat("a", 2)
        second.heartbeat()
    assert set(shell.membership.state.members) == {"b"}
    second.heartbeat()
    assert second.partitions == ALL


def test_a_member_that_gave_up_in_time_stays() -> None:
    shell = ConsumerShell()
    first, second = shell.consumer("a").join(), shell.consumer("b").join()
    shell.settle(first, second, rounds=2 * REBALANCE_MS // HEARTBEAT_MS)
    assert set(shell.membership.state.members) == {"a", "b"}


def test_the_revocation_timeout_restarts_after_a_restart() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a").join()
    shell.consumer("b").join()
    first.heartbeat()
    shell.crash()
    for _ in range(REBALANCE_MS // HEARTBEAT_MS):
        assert "a" in shell.membership.state.members
        shell.advance(HEARTBEAT_MS)
        shell.beat("a", 2)
    assert "a" not in shell.membership.state.members


def test_a_group_may_have_a_session_of_its_own() -> None:
    shell = ConsumerShell()
    shell.shard.context.group_configs = {
        GROUP: {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "7000"}
    }
    first = shell.consumer("a").join()
    assert first.response is not None
    assert first.response.heartbeat_interval_ms == 7_000
    shell.advance(49_999)
    assert "a" in shell.membership.state.members
    shell.advance(1)
    assert shell.state == "Empty"


def test_what_a_group_has_set_counts_within_the_bounds_of_the_broker() -> None:
    settings = GroupSettings(group_consumer_max_heartbeat_interval_ms=6_000)
    shell = ConsumerShell(settings)
    shell.shard.context.group_configs = {GROUP: {"consumer.heartbeat.interval.ms": "7000"}}
    assert shell.shard.context.heartbeat_interval_ms(GROUP) == 6_000


def test_a_session_that_becomes_shorter_ends_sooner() -> None:
    shell = ConsumerShell(AT_ONCE)
    first = shell.consumer("a").join()
    shell.shard.context.settings = GroupSettings(group_consumer_session_timeout_ms=10_000)
    first.heartbeat()
    shell.advance(10_000)
    assert shell.state == "Empty"
