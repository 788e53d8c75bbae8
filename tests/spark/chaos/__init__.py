"""Exactly once under fire: Spark queries whose drivers, executors, Python workers and brokers are killed."""
