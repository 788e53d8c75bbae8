"""Producer state of a partition: sequences, transactions, verification, and snapshots of it."""
