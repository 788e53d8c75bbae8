"""The exactly-once protocol: a batch is published exactly once, completely or not at all (docs/spark/exactly-once.md).

Each task writes in its own transaction and prepares it (KIP-939). The driver appends one decision that names all of
these transactions to the decision log, then commits them. Nothing of the batch is visible before that record is in the
log, and all of it will be visible after. The package imports the wire client, and nothing from Spark.

Without I/O, on the interfaces AnyDecisionLog and Coordinator of participants.py:
    names.py            batches, and the transactional ids derived from them
    decisions.py        replays the decision log: who owns a query, which batches are decided
    ownership.py        claim a query, take it over, release its name
    attempt.py          a task's transaction, from the claim until it is prepared
    publishing.py       decide, commit, complete; deadlines.py: whether a batch may still be decided
    settling.py         carry out decisions, abort leftovers; outcomes.py: what happened to a transaction
    blocks.py           the writes of one batch that share a decision

Over the wire:
    decision_log.py     the topic __kaspar_spark_decisions
    coordinator.py      the transaction coordinators
    process_state.py    what a process keeps from batch to batch; announcing.py: what it prints
    leftovers.py        what queries have left behind, ended by hand or by the next run
"""
