"""Consumer instances: consumers of librdkafka that live between the requests that use them."""
