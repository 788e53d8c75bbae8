"""Fetch: sessions, reads, and requests that wait for records."""
