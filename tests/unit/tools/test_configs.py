"""kafka-configs: what its options stand for."""

import pytest

from kaspar.client.admin.configs import ConfigEntry, ConfigSource, ConfigSynonym
from kaspar.quotas.entities import QuotaEntity
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.configs.changes import parse_added, parse_deleted
from kaspar.tools.configs.command import command_options
from kaspar.tools.configs.entities import Entities, entities_of
from kaspar.tools.configs.resources import describe_entries
from kaspar.tools.configs.users import describe_quotas

ADDRESS = ("--bootstrap-server", "localhost:9092")


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2,", {"a": "1", "b": "2"}),
        ("a=[1,2,3],b=4", {"a": "1,2,3", "b": "4"}),
        ("SCRAM-SHA-256=[iterations=4096,password=x]", {"SCRAM-SHA-256": "iterations=4096,password=x"}),
        (" a = 1 , b = ", {"a": "1", "b": ""}),
    ],
)
def test_added_settings(text: str, added: dict[str, str]) -> None:
    assert parse_added(text) == added


@pytest.mark.parametrize("text", ["", "a", "a=b=c", "a=1,b", "a b=1", "a/b=1"])
def test_settings_that_cannot_be_added(text: str) -> None:
    with pytest.raises(CommandFailed):
        parse_added(text)


def test_deleted_settings() -> None:
    assert parse_deleted(["a, b", "c"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("words", "entities"),
    [
        ("--topic t", Entities(("topics",), ("t",))),
        ("--user u --client c", Entities(("clients", "users"), ("c", "u"))),
        ("--user u --client-defaults", Entities(("users", "clients"), ("u", ""))),
        ("--entity-type users --entity-type clients --entity-name u", Entities(("users", "clients"), ("u",))),
        (
            "--entity-type users --entity-type clients --entity-default --entity-name c",
            Entities(("users", "clients"), ("", "c")),
        ),
        ("--entity-type brokers", Entities(("brokers",), ())),
        ("--broker-defaults", Entities(("brokers",), ("",))),
        ("--ip 127.0.0.1", Entities(("ips",), ("127.0.0.1",))),
    ],
)
def test_entities(words: str, entities: Entities) -> None:
    assert entities_of(command_options().parse([*ADDRESS, *words.split()])) == entities


def test_entries_of_one_source_are_described_in_the_order_of_names() -> None:
    default = ConfigSynonym("log.b", "1", ConfigSource.DEFAULT_CONFIG)
    entries = [
        ConfigEntry("c", "1", ConfigSource.DEFAULT_CONFIG, False, False),
        ConfigEntry("b", "2", ConfigSource.DYNAMIC_TOPIC_CONFIG, False, False, (default,)),
        ConfigEntry("a", None, ConfigSource.DYNAMIC_TOPIC_CONFIG, True, False),
    ]
    dynamic = ["  a=null sensitive=true synonyms={}", "  b=2 sensitive=false synonyms={DEFAULT_CONFIG:log.b=1}"]
    assert describe_entries(entries, ConfigSource.DYNAMIC_TOPIC_CONFIG) == dynamic
    assert describe_entries(entries, None) == [*dynamic, "  c=1 sensitive=false synonyms={}"]


@pytest.mark.parametrize(
    ("entity", "whose"),
    [
        (QuotaEntity(user="u"), "user-principal 'u'"),
        (QuotaEntity(user="", client_id="c"), "the default user-principal, client-id 'c'"),
        (QuotaEntity(ip=""), "the default ip"),
    ],
)
def test_quotas_are_described(entity: QuotaEntity, whose: str) -> None:
    assert describe_quotas(entity, {"b": 1e7, "a": 0.5}) == f"Quota configs for {whose} are a=0.5, b=1.0E7"
