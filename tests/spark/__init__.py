"""Topics read and written by real Spark, against a real broker."""
