"""`kaspar` against running brokers."""
