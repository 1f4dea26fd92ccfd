"""Collection of brokers' documents as Arrow record batches, in bounded memory; independent of Spark."""
