"""Consumer instances: librdkafka consumers that live across the requests that use them."""
