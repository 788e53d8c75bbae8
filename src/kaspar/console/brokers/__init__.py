"""Brokers in the console: the list, their state, and their log directories."""
