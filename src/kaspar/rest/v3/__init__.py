"""Version 3 of the API: a Kafka cluster as resources, and records streamed over open connections."""
