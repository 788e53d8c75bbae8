"""The REST proxy: Confluent's APIs, version 2 and 3. A client of the broker, like any other."""
