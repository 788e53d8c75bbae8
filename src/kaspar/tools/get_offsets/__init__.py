"""kafka-get-offsets: prints the offsets of partitions, of the end of their logs or of a time."""
