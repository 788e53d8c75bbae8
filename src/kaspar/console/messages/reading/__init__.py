"""Reads records of a topic at any position, forward and backward, in steps that are bounded in records, bytes and time.

Positions are found by ListOffsets, never by reading from the beginning, so that a page of a large topic costs what one
of a small topic costs. `batches` and `streams` decide without I/O, `fetching` asks the brokers, `scanning` merges the
partitions and filters.
"""
