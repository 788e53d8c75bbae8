"""Brokers in the console: which there are, what they do, and their log directories."""
