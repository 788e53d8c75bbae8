"""The volume of a log directory is not mounted when the broker starts, as people meet it: with commands and clients."""

import subprocess
import sys
from pathlib import Path

from kaspar.base.errors import ErrorCode
from tests.integration.commands import COMMAND_SECONDS
from tests.peers.observed import ObservedBroker

PARTITIONS = 4


def storage(*arguments: str | Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "kaspar.tools.storage", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def test_no_offset_is_given_twice_while_a_volume_is_away(tmp_path: Path) -> None:
    near, far, volume = tmp_path / "near", tmp_path / "far", tmp_path / "volume"
    settings = tmp_path / "server.properties"
    settings.write_text(f"node.id=1\nlog.dirs={near},{far}\n")
    with ObservedBroker(tmp_path / "broker", overrides={"log.dirs": f"{near},{far}"}) as broker:
        with broker.client() as client:
            assert client.create_topic("orders", partitions=PARTITIONS) == 0
            for partition in range(PARTITIONS):
                assert client.produce("orders", [b"before"], partition=partition).base_offset == 0
        code, _, problem = storage("format", "-c", settings, "--ignore-formatted")
        assert (code, problem) == (1, f"kafka-storage: {near} is in use: stop the broker first\n")
        broker.kill()
        far.rename(volume)
        far.mkdir()
        code, output, _ = storage("info", "-c", settings)
        assert (code, f"{far} is not formatted." in output) == (1, True)
        broker.expect_error("a log directory cannot be used .*mount it and start the broker again")
        broker.expect_error("a partition has no log")
        broker.start()
        with broker.client() as client:
            responses = [client.produce("orders", [b"after"], partition=index) for index in range(PARTITIONS)]
            away = {index for index, response in enumerate(responses) if response.error_code}
            assert {responses[index].error_code for index in away} == {ErrorCode.KAFKA_STORAGE_ERROR}
            assert len(away) == PARTITIONS // 2
        assert broker.stop() == 0
        (far / ".lock").unlink()
        far.rmdir()
        volume.rename(far)
        broker.start()
        with broker.client() as client:
            for index in range(PARTITIONS):
                expected = [b"before"] if index in away else [b"before", b"after"]
                assert client.read_values("orders", partition=index) == expected
        assert not broker.unexpected_errors()
    assert storage("info", "-c", settings)[0] == 0


def test_a_cluster_can_be_formatted_before_its_first_start(tmp_path: Path) -> None:
    code, output, _ = storage("random-uuid")
    assert code == 0
    cluster_id = output.strip()
    settings = tmp_path / "new.properties"
    settings.write_text(f"node.id=1\nlog.dirs={tmp_path / 'data'}\n")
    assert storage("format", "-c", settings, "-t", "no id")[0] == 1
    assert storage("format", "--standalone", "-t", cluster_id, "-c", settings)[0] == 0, "as in Kafka's quickstart"
    with ObservedBroker(tmp_path) as broker, broker.client() as client:
        assert client.metadata().cluster_id == cluster_id
        assert client.create_topic("orders") == 0
