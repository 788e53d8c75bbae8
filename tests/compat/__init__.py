"""The clients people already use, against Kaspar or (`--against kafka`) against Apache Kafka's own broker."""
