"""kaspar.streams: programs run by the test driver and on Spark, and compared with Kafka Streams."""
