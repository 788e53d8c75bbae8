"""What people try first, unchanged from Maven: Kafka Streams, Connect, MirrorMaker 2."""
