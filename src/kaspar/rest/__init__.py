"""The REST proxy: versions 2 and 3 of Confluent's API. It is a client of the brokers like any other."""
