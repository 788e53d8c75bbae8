"""The overview, and rates over time."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kaspar.acls.acl import AclOperation
from kaspar.callers.permissions import require_cluster
from kaspar.client.admin.session import Admin
from kaspar.console.http.endpoint import Call, parse_number, reads, watched
from kaspar.console.http.errors import CallFailed
from kaspar.console.overview import Overview, overview_of
from kaspar.console.problems import Unacceptable
from kaspar.console.topics.listing import read_topics
from kaspar.monitor.core import Monitor

_MOST_SERIES: Final = 20
_RECENT_MS: Final = 30_000
_FIRST_LOOK_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Series:
    broker: int | None
    """None for the whole cluster."""
    points: Mapping[str, list[tuple[int, float]]]
    """The time in milliseconds and value of each point, oldest first, by the name of the rate."""


@reads("/api/overview")
async def overview(call: Call) -> Overview:
    return await _overview(call)


@watched("overview")
async def watched_overview(call: Call, _: str) -> Overview:
    return await _overview(call)


async def _overview(call: Call) -> Overview:
    monitor = call.context.monitor
    await _first_look(monitor)
    if monitor.cluster is None:
        reason = monitor.cluster_problem or "It has just started"
        raise CallFailed(503, f"The monitor has not read the cluster yet. {reason}.")
    return overview_of(
        monitor.cluster,
        monitor.lag.groups(),
        monitor.canary,
        visible_topics=await _visible_topics(call),
        visible_groups=await call.visible_groups(),
    )


async def _visible_topics(call: Call) -> Mapping[str, int] | None:
    """The topics that the caller may describe, with their numbers of partitions; None for all topics."""
    if not call.context.propagates:
        return None
    known = await call.shared("topics", read_topics)
    return {each.name: each.partitions for each in known.rows}


async def _first_look(monitor: Monitor) -> None:
    """Wait a moment for the monitor's first round, so that a page opened right after the start shows no error."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_FIRST_LOOK_S), monitor.subscribe() as rounds:
            while monitor.cluster is None and not monitor.cluster_problem:
                await anext(rounds)


@reads("/api/rates")
async def rates(call: Call) -> Series:
    """The rates with these names in the last `minutes`."""
    names = call.texts("name")
    if not 0 < len(names) <= _MOST_SERIES:
        raise Unacceptable(f"From 1 to {_MOST_SERIES} rates can be requested at once.")
    broker = call.number("broker", 0) if call.text("broker") else None
    return await _series(call, names, broker, call.number("minutes", 15, least=1, most=1440) * 60_000)


@watched("rates")
async def watched_rates(call: Call, argument: str) -> Series:
    """The newest points, of the whole cluster or of one broker."""
    broker = parse_number("broker", argument) if argument else None
    series = await _series(call, call.context.monitor.rates.names, broker, _RECENT_MS)
    return Series(broker, {name: points[-1:] for name, points in series.points.items()})


async def _series(call: Call, names: list[str], broker: int | None, last_ms: int) -> Series:
    if call.context.propagates:
        await call.shared("rates", _may_see_rates)
    monitor = call.context.monitor
    since_ms = monitor.clock.now_ms() - last_ms
    return Series(
        broker,
        {name: [(each.at_ms, each.value) for each in monitor.rates.series(name, since_ms, broker)] for name in names},
    )


def _may_see_rates(admin: Admin) -> None:
    require_cluster(admin, AclOperation.DESCRIBE, "Seeing the rates of the cluster")


ENDPOINTS = (overview, rates)
CHANNELS = (watched_overview, watched_rates)
