"""Transactions in the console.

- `listing`: the transactional ids, with the states of their last transactions
- `hanging`: transactions that are open on a partition and that no coordinator will end
- `ending`: aborts of either kind
"""
