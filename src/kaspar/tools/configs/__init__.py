"""kafka-configs: the settings of topics, brokers, groups and others; quotas; and SCRAM credentials of users."""
