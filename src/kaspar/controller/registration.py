"""Registers a broker in the metadata store, for as long as its session lives.

An earlier registration with the same id may still exist, because ZooKeeper ends the session of a dead process only when
it times out. If the process is known to be dead, its registration is replaced. Otherwise the broker waits for it to
disappear; a registration that stays belongs to another running broker with the same id.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.controller.fence import retried
from kaspar.metadata.image import BrokerRegistration
from kaspar.metadata.layout import broker_nodes
from kaspar.metadata.loading import load_brokers
from kaspar.metadata.store import Create, Delete, Operation, Put, Store, UnknownOutcome, VersionConflict

log = get_log(__name__)

LOOK_AGAIN_S = 0.2

IsDead: TypeAlias = Callable[[BrokerRegistration], Awaitable[bool]]
"""Whether the process of a registration is known to have ended."""


async def _unknown(registration: BrokerRegistration) -> bool:
    return False


async def register_broker(
    store: Store,
    registration: BrokerRegistration,
    *,
    is_dead: IsDead = _unknown,
    wait_s: float = 0.0,
    retry_delay_s: float = 0.05,
) -> BrokerRegistration:
    """Register a broker that is up. Returns the registration with its epoch and incarnation. `wait_s`: how long to wait
    for an earlier incarnation to end.
    """
    until = time.monotonic() + wait_s
    waits = False
    while True:
        earlier = (await retried(lambda: load_brokers(store), retry_delay_s)).get(registration.broker_id)
        if earlier is not None and await _is_mine(store, earlier, retry_delay_s):
            # An earlier attempt with an unknown outcome was committed.
            return earlier
        if earlier is None or await is_dead(earlier):
            with contextlib.suppress(UnknownOutcome):  # the next iteration finds out
                registered = await _register(store, registration, earlier)
                if registered is not None:
                    return registered
        elif time.monotonic() >= until:
            raise Refused(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"Another broker is registered with the id {registration.broker_id}, at {_addresses(earlier)}: every "
                "broker needs its own node.id",
            )
        elif not waits:
            waits = True
            log.warning(
                "another process is registered with the id of this broker; waiting until its session ends",
                node=registration.broker_id,
                address=_addresses(earlier),
            )
        await asyncio.sleep(LOOK_AGAIN_S if waits else retry_delay_s)


def _addresses(registration: BrokerRegistration) -> str:
    return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in registration.endpoints)


async def _register(
    store: Store, registration: BrokerRegistration, dead: BrokerRegistration | None
) -> BrokerRegistration | None:
    """Register once. None if another registration was created first or the dead one is gone: the caller tries again."""
    broker_id = registration.broker_id
    counter = await store.get(broker_nodes.incarnations_path(broker_id))
    if counter is None:
        with contextlib.suppress(VersionConflict):
            await store.transact([Create(broker_nodes.incarnations_path(broker_id))])
        counter = await store.get(broker_nodes.incarnations_path(broker_id))
        if counter is None:
            return None
    incarnation = counter.version + 1
    path = broker_nodes.broker_path(broker_id, incarnation)
    # Stored with the counter, because the controller may not see every registration.
    last_crash = broker_nodes.last_crash(counter) if registration.clean_start else incarnation
    registration = replace(registration, last_crash=last_crash)
    operations: list[Operation] = [Put(broker_nodes.incarnations_path(broker_id), b"%d" % last_crash, counter.version)]
    if dead is not None:
        operations.append(Delete(broker_nodes.broker_path(broker_id, dead.incarnation)))
    operations.append(Create(path, broker_nodes.encode_registration(registration), ephemeral=True))
    try:
        await store.transact(operations)
    except VersionConflict:
        return None
    node = await store.get(path)
    return None if node is None else replace(registration, epoch=node.created, incarnation=incarnation)


async def _is_mine(store: Store, registration: BrokerRegistration, retry_delay_s: float) -> bool:
    path = broker_nodes.broker_path(registration.broker_id, registration.incarnation)
    node = await retried(lambda: store.get(path), retry_delay_s)
    return node is not None and node.is_mine
