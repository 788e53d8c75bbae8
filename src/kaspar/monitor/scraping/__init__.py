"""Rates of a cluster, from the metrics pages of its brokers or, without pages, from log end offsets."""
