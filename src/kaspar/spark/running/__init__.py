"""Running Spark: sessions and the Java below them, Python workers, and standalone clusters on this machine."""
