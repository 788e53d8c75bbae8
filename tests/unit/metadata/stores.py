"""The stores that the contract tests run on. Another implementation joins by adding its factory to STORES."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from kaspar.metadata.faults import FaultyStore
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import Store

T = TypeVar("T")


class Ensemble(Protocol):
    """A running store, on which sessions are opened."""

    def connect(self) -> Store: ...


OpenEnsemble = Callable[[Path], AbstractAsyncContextManager[Ensemble]]


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[Ensemble]:
    metadata = await SqliteMetadata.open(folder)
    try:
        yield metadata
    finally:
        await metadata.close()


class _Wrapped:
    def __init__(self, inner: Ensemble) -> None:
        self._inner = inner

    def connect(self) -> Store:
        return FaultyStore(self._inner.connect(), prompt_watches=True)


@asynccontextmanager
async def without_faults(folder: Path) -> AsyncIterator[Ensemble]:
    """The wrapper that injects faults must keep the contract when it injects none."""
    async with sqlite(folder) as inner:
        yield _Wrapped(inner)


STORES: dict[str, OpenEnsemble] = {"sqlite": sqlite, "without-faults": without_faults}


async def within(seconds: float, awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await awaitable


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop and the store's thread go on until it holds."""
    never = asyncio.Event()
    while not condition():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(never.wait(), 0.001)
