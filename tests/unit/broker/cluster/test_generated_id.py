"""Ids for brokers whose settings have none."""

import asyncio
from pathlib import Path

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.base.ids import random_uuid
from kaspar.broker.cluster.generated_id import generate_id, with_node_id
from kaspar.config import BrokerSettings
from kaspar.controller.registration import register_broker
from kaspar.metadata.faults import Fault, FaultyStore
from kaspar.metadata.loading import prepare_store
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.storage.directories.folder_metadata import MetaProperties, write_meta_properties
from kaspar.storage.disk.files import OsFiles
from tests.unit.controller.clusters import broker
from tests.unit.controller.test_shell import run, scripted


def test_generated_ids_are_above_the_reserved_ones_and_never_given_twice(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = metadata.connect()
        assert [await generate_id(store, 1000) for _ in range(3)] == [1001, 1002, 1003]
        several = await asyncio.gather(*(generate_id(metadata.connect(), 1000) for _ in range(5)))
        assert sorted(several) == [1004, 1005, 1006, 1007, 1008]

    run(scenario, tmp_path)


def test_the_id_of_a_broker_that_was_configured_with_it_is_not_generated(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = metadata.connect()
        await prepare_store(store)
        await register_broker(store, broker(1001), retry_delay_s=0)
        assert await generate_id(store, 1000) == 1002

    run(scenario, tmp_path)


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.NO_RESPONSE])
def test_an_unknown_outcome_costs_an_id_at_most(tmp_path: Path, fault: Fault) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect(), scripted(Fault.NONE, fault, fault, Fault.NONE, fault))
        found = await generate_id(store, 1000)
        assert found in (1001, 1002)
        assert await generate_id(store, 1000) == found + 1

    run(scenario, tmp_path)


def settings(folder: Path, **more: str) -> BrokerSettings:
    values = {name.replace("_", "."): value for name, value in more.items()}
    return BrokerSettings.of({"zookeeper.connect": "127.0.0.1:1", "log.dirs": f"{folder}/a,{folder}/b", **values})


def test_a_broker_keeps_the_id_of_its_log_directories(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    write_meta_properties(OsFiles(), str(tmp_path / "b"), MetaProperties("cluster", 1007, random_uuid()))
    for given in (settings(tmp_path), settings(tmp_path, broker_id="-1", broker_id_generation_enable="false")):
        assert asyncio.run(with_node_id(given)).config.node_id == 1007


@pytest.mark.parametrize("name", ["node.id", "broker.id"])
def test_an_id_in_the_settings_is_used(tmp_path: Path, name: str) -> None:
    given = settings(tmp_path, **{name: "4"})
    assert asyncio.run(with_node_id(given)).config.node_id == 4


def test_without_generation_an_id_is_required(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"node\.id is required"):
        asyncio.run(with_node_id(settings(tmp_path, broker_id_generation_enable="false")))


def test_a_broker_on_the_embedded_store_needs_no_generated_id(tmp_path: Path) -> None:
    given = BrokerSettings.of({"log.dirs": str(tmp_path)})
    assert asyncio.run(with_node_id(given)).config.node_id == 1
