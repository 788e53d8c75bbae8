"""kaspar.streams and Kafka Streams on the same topologies and the same input: what they write must be equal."""
