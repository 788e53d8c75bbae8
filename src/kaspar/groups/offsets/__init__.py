"""Committed offsets: their records, commits within transactions, and expiry."""
