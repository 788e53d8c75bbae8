"""The disk of the metadata store fails for a while: records are served meanwhile, and changes when it works again."""

from pathlib import Path

from kaspar.base.errors import ErrorCode
from tests.chaos.conftest import StartBroker
from tests.chaos.faulty_disk import FaultyDisk
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until

TOPIC = "orders"


def test_a_metadata_store_that_fails_for_a_while_is_claimed_again(start_broker: StartBroker, tmp_path: Path) -> None:
    disk = unless_missing(lambda: FaultyDisk.prepare(tmp_path, tmp_path / "metadata"))
    (tmp_path / "metadata").mkdir()
    broker = start_broker(overrides={"metadata.log.dir": str(tmp_path / "metadata")}, environment=disk.environment)
    broker.expect_error("the controller has lost the metadata store")
    with broker.client() as client:
        assert client.create_topic(TOPIC) == ErrorCode.NONE
        disk.fail()
        assert client.create_topic("meanwhile") == ErrorCode.NOT_CONTROLLER
        status, sentence = broker.get("readyz")
        assert (status, "metadata store" in sentence) == (503, True)
        assert client.produce(TOPIC, [b"meanwhile"]).error_code == ErrorCode.NONE
        disk.work_again()
        wait_until(lambda: broker.get("readyz")[0] == 200, "the broker is ready again")
        # The one that was refused may be there or not: its outcome was unknown.
        assert client.create_topic("meanwhile") in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        assert client.create_topic("afterwards") == ErrorCode.NONE
        assert client.produce("meanwhile", [b"value"]).error_code == ErrorCode.NONE
