"""A broker whose metadata store fails for a while: it serves records, says that it is not ready, and recovers."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.http import readiness_problem
from kaspar.broker.view import RunningBroker
from kaspar.controller import Controller, ControllerShell, fence
from kaspar.metadata import sqlite
from kaspar.metadata.sqlite import SqliteMetadata
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.controller.clusters import vacated
from tests.unit.storage.logs import make_batch

T = TypeVar("T")


def test_a_failing_metadata_store_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = False
    really_run = SqliteMetadata.run

    async def run_or_fail(self: SqliteMetadata, work: Callable[[], T]) -> T:
        if failing:
            problem = sqlite3.OperationalError("disk I/O error")
            problem.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise problem
        return await really_run(self, work)

    async def scenario() -> None:
        nonlocal failing
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            view = RunningBroker(broker)
            assert readiness_problem(broker.metrics, view) is None
            assert view.controller() is not None
            failing = True
            with pytest.raises(Refused) as refused:
                await create_topic(broker, "u")
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
            problem = readiness_problem(broker.metrics, view)
            assert problem is not None
            assert "disk I/O error" in problem
            assert view.controller() is None
            with pytest.raises(Refused) as refused:
                await broker.producer_ids.next()
            assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            client = Client(broker)
            client.produce(("t", 0, make_batch()))
            (produced,) = await client.produced()
            assert produced.error_code == ErrorCode.NONE
            failing = False
            await until(lambda: readiness_problem(broker.metrics, view) is None)
            assert await broker.producer_ids.next() == 0
            await create_topic(broker, "u")
            assert not broker.failure.done()

    monkeypatch.setattr(SqliteMetadata, "run", run_or_fail)
    monkeypatch.setattr(fence, "MAX_ATTEMPTS", 3)
    run(scenario())


def test_a_metadata_store_that_hangs_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            view, goes_on = RunningBroker(broker), threading.Event()
            assert isinstance(broker._metadata, SqliteMetadata)
            monkeypatch.setattr(sqlite, "RESPOND_WITHIN_S", 0.05)
            monkeypatch.setattr(fence, "PATIENCE_S", 0.0)
            hanging = asyncio.ensure_future(broker._metadata.run(goes_on.wait))
            with pytest.raises(Refused) as refused:
                await create_topic(broker, "t")
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
            assert "has not responded" in str(readiness_problem(broker.metrics, view))
            monkeypatch.setattr(sqlite, "RESPOND_WITHIN_S", 10.0)
            goes_on.set()
            await hanging
            await until(lambda: readiness_problem(broker.metrics, view) is None)
            await until(lambda: "t" in broker.partitions.by_name)  # it was done as soon as it could be
            await create_topic(broker, "u")
            assert not broker.failure.done()

    run(scenario())


def test_a_broker_whose_controller_was_replaced_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            assert broker._metadata is not None
            other = ControllerShell(await vacated(broker._metadata.connect()), Controller(broker.settings))
            await other.start()
            with pytest.raises(Refused) as refused:
                await create_topic(broker, "t")
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
            assert "another controller" in str(await broker.failure)
            await other.stop()

    run(scenario())
