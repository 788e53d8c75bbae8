"""A folder of Apache Kafka that Kaspar takes over: what one served, the other serves."""
