"""Produce: from the batches of a request to appends, and their acknowledgement."""
