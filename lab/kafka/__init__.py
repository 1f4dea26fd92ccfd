"""A real Kafka cluster on loopback, with KRaft, for tests."""

KAFKA_VERSION = "4.3.0"
