"""Running Spark: sessions and the Java that they use, Python workers, and standalone clusters on this machine."""
