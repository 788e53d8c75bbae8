"""The log cleaner on the broker: which logs it may touch, its threads and its numbers."""
