"""Compaction: rewrites the old segments of a log so that of every key the last value stays.

Everything here runs in the cleaner's threads, beside the event loop that owns the logs.
"""
