"""The supervisor of pipelines, without Spark."""
