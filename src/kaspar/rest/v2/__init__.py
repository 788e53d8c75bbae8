"""Version 2 of the API: topics, partitions, producing, and consumer instances."""
