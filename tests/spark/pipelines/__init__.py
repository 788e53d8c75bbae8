"""Pipelines on real Spark: programs by themselves, and under the supervisor."""
