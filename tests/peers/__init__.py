"""What tests and benchmarks run as processes: Apache Kafka's broker and tools, Kaspar's broker, other clients."""
