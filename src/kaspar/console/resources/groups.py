"""Groups: listed, described, with their lag over time, reset, and deleted.

Group ids may contain slashes, so they are the last part of a path.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from kaspar.client.admin.groups import list_groups
from kaspar.console.groups import changing, resetting
from kaspar.console.groups.describing import GroupView, describe_group
from kaspar.console.groups.listing import GroupPage, GroupQuery, SortKey, select, with_members
from kaspar.console.groups.resetting import Move, Preview, Scope, Target
from kaspar.console.http.endpoint import Call, Endpoint, changes, reads, watched
from kaspar.console.problems import NotThere
from kaspar.monitor.views import LagPoint

_HISTORY_MS: Final = 6 * 3_600_000


@dataclass(frozen=True, slots=True)
class LagHistory:
    points: tuple[LagPoint, ...]
    status: str | None
    """Like the time of the round, None if the monitor has not seen the group."""
    total_lag: int | None
    max_lag_seconds: float | None
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class PreviewBody:
    target: Target
    scopes: tuple[Scope, ...] = ()
    """The partitions to reset; if empty, all that the group has committed."""


@dataclass(frozen=True, slots=True)
class ResetBody:
    moves: tuple[Move, ...]
    """The moves as a preview returned them."""


@reads("/api/groups")
async def groups(call: Call) -> GroupPage:
    query = GroupQuery(
        call.text("search"),
        call.text("state"),
        call.text("type"),
        call.text("status"),
        call.choice("sort", SortKey.GROUP),
        call.flag("descending"),
        call.number("offset", 0),
        call.limit(),
    )
    listed = await call.shared("groups", list_groups)
    page = select(listed, call.context.monitor.lag.groups(), query)
    names = tuple(row.group_id for row in page.rows)
    return await call.shared(("groups", query, names), partial(with_members, page=page))


@reads("/api/groups/{group:rest}")
async def group(call: Call) -> GroupView:
    name = call.path["group"]
    lag = call.context.monitor.lag.group(name)
    return await call.shared(("group", name), partial(describe_group, group_id=name, lag=lag))


@watched("group")
async def lag_history(call: Call, name: str) -> LagHistory:
    visible = await call.visible_groups()
    if visible is not None and name not in visible:
        raise NotThere(f"There is no group {name}, or you may not see it.")
    context = call.context
    points = tuple(context.monitor.lag.history(name, context.clock.now_ms() - _HISTORY_MS))
    lag = context.monitor.lag.group(name)
    if lag is None:
        return LagHistory(points, None, None, None, None)
    return LagHistory(points, lag.status.name, lag.total_lag, lag.max_lag_seconds, lag.at_ms)


async def _preview(call: Call) -> Preview:
    """Preview a reset. This changes nothing, so it is not in the audit log."""
    body = await call.body(PreviewBody)
    return await call.ask(
        partial(
            resetting.preview,
            group_id=call.path["group"],
            target=body.target,
            scopes=body.scopes,
            now_ms=call.context.clock.now_ms(),
        )
    )


@changes("POST", "/api/group-reset/{group:rest}", action="reset offsets", resource="group {group}")
async def reset(call: Call) -> None:
    body = await call.body(ResetBody)
    call.note("; ".join(f"{each.where}: {_offset(each.old)} -> {each.new}" for each in body.moves))
    await call.ask(partial(resetting.execute, group_id=call.path["group"], moves=body.moves))


@changes("DELETE", "/api/groups/{group:rest}", action="delete group", resource="group {group}")
async def delete(call: Call) -> None:
    await call.ask(partial(changing.delete_group, group_id=call.path["group"]))


@changes("DELETE", "/api/group-offsets/{group:rest}", action="delete offsets", resource="group {group}")
async def delete_offsets(call: Call) -> int:
    topic = call.text("topic")
    call.note(f"topic {topic}")
    return await call.ask(partial(changing.delete_offsets, group_id=call.path["group"], topic=topic))


@changes("DELETE", "/api/group-members/{group:rest}", action="remove member", resource="group {group}")
async def remove_member(call: Call) -> None:
    member = call.text("member")
    call.note(f"member {member}")
    await call.ask(partial(changing.remove_member, group_id=call.path["group"], member_id=member))


def _offset(offset: int | None) -> str:
    return "none" if offset is None else str(offset)


ENDPOINTS = (
    groups,
    group,
    Endpoint("POST", "/api/group-preview/{group:rest}", _preview),
    reset,
    delete,
    delete_offsets,
    remove_member,
)
CHANNELS = (lag_history,)
