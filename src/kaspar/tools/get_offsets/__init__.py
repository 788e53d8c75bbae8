"""kafka-get-offsets: prints the offsets of partitions at an end of their logs or at a time."""
