"""The file of a ZooKeeper server."""

from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.zookeeper import Member, read_config, write_config
from kaspar.zookeeper.config import write_id


def test_written_file_is_a_single_server_on_loopback(tmp_path: Path) -> None:
    config = write_config(tmp_path / "zk")
    assert (config.client_host, config.client_port) == ("127.0.0.1", 2181)
    assert config.data_dir == tmp_path / "zk" / "data"
    assert not config.is_member
    lines = config.file.read_text().splitlines()
    assert "clientPortAddress=127.0.0.1" in lines
    assert "autopurge.purgeInterval=1" in lines
    assert not any(line.startswith("server.") for line in lines)


def test_members_of_an_ensemble_are_in_the_file_of_each(tmp_path: Path) -> None:
    config = write_config(tmp_path, members=[Member(1, "a"), Member(2, "b", 1, 2)], more={"tickTime": "100"})
    assert config.is_member
    lines = config.file.read_text().splitlines()
    assert "server.1=a:2888:3888" in lines
    assert "server.2=b:1:2" in lines
    assert "tickTime=100" in lines


def test_given_file_says_where_the_server_listens(tmp_path: Path) -> None:
    file = tmp_path / "zoo.cfg"
    file.write_text(f"dataDir={tmp_path}/d\nclientPort=2200\nclientPortAddress=0.0.0.0\n")
    config = read_config(file)
    assert (config.client_host, config.client_port, config.data_dir) == ("127.0.0.1", 2200, tmp_path / "d")
    file.write_text(f"dataDir={tmp_path}/d\nserver.1=a:1:2;2181\n")
    assert read_config(file).client_port is None


def test_port_for_tls_and_its_stores_are_known(tmp_path: Path) -> None:
    file = tmp_path / "zoo.cfg"
    lines = ["secureClientPort=2282", "ssl.keyStore.location=/a/key.pem", "ssl.keyStore.password=hush"]
    file.write_text("\n".join([f"dataDir={tmp_path}/d", *lines, "ssl.trustStore.location=/a/ca.p12"]))
    config = read_config(file)
    assert (config.client_port, config.secure_client_port) == (None, 2282)
    assert config.stores == {
        "ssl.keystore.location": "/a/key.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.password": "hush",
        "ssl.key.password": "hush",
        "ssl.truststore.location": "/a/ca.p12",
        "ssl.truststore.type": "JKS",
    }
    assert "hush" not in repr(config)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("clientPort=2181\n", "does not set dataDir"), ("dataDir=/d\nclientPort=many\n", "'many', which is not a port")],
)
def test_file_that_cannot_work_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "zoo.cfg").write_text(text)
    with pytest.raises(KasparError, match=sentence):
        read_config(tmp_path / "zoo.cfg")


def test_data_belongs_to_one_member(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    write_id(config, 2)
    write_id(config, 2)
    assert (config.data_dir / "myid").read_text() == "2\n"
    with pytest.raises(KasparError, match="is the data of member 2, not of member 3"):
        write_id(config, 3)
