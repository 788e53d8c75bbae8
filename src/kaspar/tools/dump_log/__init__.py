"""kafka-dump-log: prints the contents of a partition's files, and checks its indexes against the log."""
