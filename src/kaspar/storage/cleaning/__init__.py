"""Compaction: rewrites the old segments of a log so that the last value of every key stays.

Everything here runs in the cleaner's threads, concurrently with the event loop that owns the logs.
"""
