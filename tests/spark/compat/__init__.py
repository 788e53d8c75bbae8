"""Our data source beside Spark's own Kafka connector: the same options on the same topics give the same rows."""
