"""Commands with the names and flags of Kafka's scripts."""
