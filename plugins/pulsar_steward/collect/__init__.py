"""What brokers say of themselves → Arrow record batches, in bounded memory; knows nothing of Spark."""
