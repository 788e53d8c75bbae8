"""A topic is deleted, and made again, while a log directory with some of its partitions is away."""

from pathlib import Path

from tests.peers.observed import ObservedBroker, wait_until

PARTITIONS = 4


def test_the_next_start_takes_the_new_topic_and_removes_the_old_one(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    settings = {"log.dirs": f"{near},{far}", "log.segment.delete.delay.ms": "0"}
    with ObservedBroker(tmp_path / "broker", overrides=settings) as broker:
        with broker.client() as client:
            assert client.create_topic("orders", partitions=PARTITIONS) == 0
            for partition in range(PARTITIONS):
                assert client.produce("orders", [b"old"], partition=partition).error_code == 0
        assert broker.stop() == 0
        away = tmp_path / "away"
        far.rename(away)
        far.write_text("no folder can be made here")
        broker.expect_error("a log directory cannot be used")
        broker.expect_error("a partition has no log")
        broker.start()
        with broker.client() as client:
            assert client.delete_topic("orders") == 0
            assert client.create_topic("orders", partitions=PARTITIONS) == 0
            for partition in range(PARTITIONS):
                assert client.produce("orders", [b"new"], partition=partition).base_offset == 0
        assert broker.stop() == 0
        far.unlink()
        away.rename(far)
        broker.start()
        with broker.client() as client:
            for partition in range(PARTITIONS):
                assert client.produce("orders", [b"newer"], partition=partition).error_code == 0
                assert client.read_values("orders", partition=partition) == [b"new", b"newer"]
        wait_until(lambda: not list(far.glob("orders-*")), "the old logs are removed")
        assert not broker.unexpected_errors()
