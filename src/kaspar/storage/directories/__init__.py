"""Log directories: locks, identity (`meta.properties`), state, and the partition folders in them."""
