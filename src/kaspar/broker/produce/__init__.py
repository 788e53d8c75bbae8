"""Produce: appends the batches of a request, and acknowledges them."""
