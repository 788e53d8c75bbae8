"""`zookeeper.connect` in Kafka's form."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.metadata.zookeeper.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("localhost", ("localhost:2181",), ""),
        ("zk1:2181,zk2:2182, zk3 ", ("zk1:2181", "zk2:2182", "zk3:2181"), ""),
        ("zk1:2181,zk2:2181/kafka", ("zk1:2181", "zk2:2181"), "/kafka"),
        ("zk1/clusters/one/", ("zk1:2181",), "/clusters/one"),
        ("zk1:2181/", ("zk1:2181",), ""),
        ("[::1]:2183,[fe80::1]/a", ("[::1]:2183", "[fe80::1]:2181"), "/a"),
    ],
)
def test_servers_and_path(text: str, servers: tuple[str, ...], chroot: str) -> None:
    address = parse_address(text)
    assert address == Address(servers, chroot)
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text", ["", ",", "a,,b", "a:b", "a:0", "a:65536", ":2181", "a b", "http://a", "[::1", "::1:2181"]
)
def test_what_is_no_server_is_named(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"not of the form host1:port1,host2:port2/chroot: '.*' is not a server"):
        parse_address(text)


@pytest.mark.parametrize("path", ["//kafka", "/a/../b", "/.", "/a\tb"])
def test_what_is_no_path_is_named(path: str) -> None:
    with pytest.raises(InvalidSetting, match="is not a path of ZooKeeper"):
        parse_address("localhost:2181" + path)


def test_path_that_would_make_transactions_too_large_is_refused() -> None:
    assert parse_address("localhost/" + "x" * 63).chroot == "/" + "x" * 63
    with pytest.raises(InvalidSetting, match="is longer than 64 bytes"):
        parse_address("localhost/" + "x" * 64)
