"""Reading of Kafka clusters into snapshots, by the AdminClient of `confluent-kafka`; nothing here changes a cluster."""
