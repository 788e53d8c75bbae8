"""The Kafka protocol: messages, their codecs, and which versions are served."""
