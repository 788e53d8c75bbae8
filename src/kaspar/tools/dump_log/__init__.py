"""kafka-dump-log: prints what is in the files of a partition, and checks its indexes against the log."""
