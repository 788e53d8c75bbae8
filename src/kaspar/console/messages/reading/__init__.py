"""Reads records of a topic at any position, forward and backward, in steps that are bounded in records, bytes and time.

Positions are found by ListOffsets, never by reading from the beginning, so that a page of a large topic costs as much
as one of a small topic. `batches` and `streams` decide without I/O, `fetching` sends the requests to the brokers,
`scanning` merges the partitions and filters.
"""
