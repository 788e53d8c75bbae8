"""The log cleaner on the broker: which logs it may clean, its threads and its metrics."""
