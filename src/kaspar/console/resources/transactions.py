"""Transactions: listed, described and aborted. Hanging transactions are searched on request.

Transactional ids may contain slashes, so they are the last part of a path.
"""

from functools import partial
from typing import Final

from kaspar.client.admin.transactions import list_transactions
from kaspar.console.http.endpoint import Call, changes, reads
from kaspar.console.problems import Unacceptable
from kaspar.console.transactions import ending, listing
from kaspar.console.transactions.ending import SeenOnPartition, SeenTransaction
from kaspar.console.transactions.hanging import HangingReport, search
from kaspar.console.transactions.listing import Phase, SortKey, TransactionPage, TransactionQuery, TransactionView

_SILENT_MS: Final = 900_000
"""Kafka's default of transaction.max.timeout.ms: a transaction without records for longer will not end by itself."""


@reads("/api/transactions")
async def transactions(call: Call) -> TransactionPage:
    phase = call.text("phase")
    if phase not in ("", *Phase):
        raise Unacceptable(f"phase must be one of {', '.join(Phase)}.")
    query = TransactionQuery(
        call.text("search"),
        Phase(phase) if phase else None,
        call.choice("sort", SortKey.TRANSACTIONAL_ID),
        call.flag("descending"),
        call.number("offset", 0),
        call.limit(),
    )
    listed = await call.shared("transactions", list_transactions)
    return await call.shared(("transactions", query), partial(listing.page, listed=listed, query=query))


@reads("/api/transactions/{transactional_id:rest}")
async def transaction(call: Call) -> TransactionView:
    name = call.path["transactional_id"]
    return await call.shared(("transaction", name), partial(listing.describe, transactional_id=name))


@reads("/api/hanging-transactions")
async def hanging(call: Call) -> HangingReport:
    topic = call.text("topic") or None
    silent_ms = call.number("silent_ms", _SILENT_MS)
    since_ms = call.context.clock.now_ms() - silent_ms
    return await call.shared(("hanging", topic, silent_ms), partial(search, topic=topic, silent_since_ms=since_ms))


@changes(
    "POST",
    "/api/transactions/{transactional_id:rest}",
    action="terminate transaction",
    resource="transactional id {transactional_id}",
)
async def terminate(call: Call) -> int:
    """Abort a transaction. Returns the new epoch of its producer."""
    seen = await call.body(SeenTransaction)
    if seen.transactional_id != call.path["transactional_id"]:
        raise Unacceptable("The path and the body have different transactional ids.")
    call.note(f"producer {seen.producer_id}, epoch {seen.producer_epoch}")
    return await call.ask(partial(ending.terminate, seen=seen))


@changes("POST", "/api/hanging-transactions", action="abort hanging transaction", resource="partition")
async def abort_hanging(call: Call) -> None:
    seen = await call.body(SeenOnPartition)
    call.note(f"{seen.topic}-{seen.partition}, producer {seen.producer_id}, offset {seen.start_offset}")
    await call.ask(partial(ending.abort_hanging, seen=seen))


ENDPOINTS = (transactions, transaction, hanging, terminate, abort_hanging)
