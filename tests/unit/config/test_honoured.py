"""A setting that the reference page calls effective is read by someone; the others say why they have no effect."""

import re
from pathlib import Path

import kaspar
from kaspar.config import BrokerConfig, LogConfig

SOURCES = Path(kaspar.__file__).parent
READ_THROUGH_A_PROPERTY = {
    "advertised.listeners": "advertised_endpoints",
    "listener.security.protocol.map": "endpoints",
    "controller.listener.names": "endpoints",
    "max.connections.per.ip.overrides": "max_connections_by_address",
    "kaspar.metrics.listener": "metrics_address",
}
CHECKED_AT_THE_START = {
    "process.roles",
    "zookeeper.clientCnxnSocket",
    "zookeeper.ssl.crl.enable",
    "zookeeper.ssl.ocsp.enable",
}


def words_outside_config() -> set[str]:
    """Attributes, and the names in quotes of settings that differ between listeners."""
    files = (file for file in SOURCES.rglob("*.py") if SOURCES / "config" not in file.parents)
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {word for text in texts for word in re.findall(r'\w+|"[a-z.0-9]+"', text)}


def test_effective_settings_are_read() -> None:
    words = words_outside_config()
    through_topics = {synonym.name for setting in LogConfig.declared.values() for synonym in setting.synonyms}
    unread = [
        name
        for table in (BrokerConfig, LogConfig)
        for name, setting in table.declared.items()
        if not setting.not_honoured
        and not setting.internal
        and name not in CHECKED_AT_THE_START
        and (table is LogConfig or name not in through_topics)
        and READ_THROUGH_A_PROPERTY.get(name, setting.attribute) not in words
        and f'"{name}"' not in words
    ]
    assert unread == []


def test_settings_without_effect_are_not_read() -> None:
    files = (file for file in SOURCES.rglob("*.py") if SOURCES / "config" not in file.parents)
    read = {name for file in files for name in re.findall(r"\bconfig\.(\w+)", file.read_text(encoding="utf-8"))}
    declared = [setting for table in (BrokerConfig, LogConfig) for setting in table.declared.values()]
    assert [each.name for each in declared if each.not_honoured and each.attribute in read] == []
