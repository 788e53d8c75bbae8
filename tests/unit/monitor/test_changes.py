"""Watchers are woken by changes, and cost nothing besides."""

import asyncio

from kaspar.monitor.changes import Changes


def test_each_watcher_is_woken_once_for_all_changes_since_it_last_looked() -> None:
    async def scenario() -> None:
        changes = Changes()
        async with changes.subscribe() as first, changes.subscribe() as second:
            assert changes.watched
            for _ in range(3):
                changes.notify()
            await anext(first)
            waiting = asyncio.ensure_future(anext(first))
            await asyncio.sleep(0)
            assert not waiting.done()
            changes.notify()
            await waiting
            await anext(second)
        assert not changes.watched

    asyncio.run(scenario())


def test_a_watcher_that_is_cancelled_is_forgotten() -> None:
    async def scenario() -> None:
        changes = Changes()

        async def watch() -> None:
            async with changes.subscribe() as watcher:
                await anext(watcher)

        task = asyncio.create_task(watch())
        await changes.wait_for_watcher()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not changes.watched

    asyncio.run(scenario())
