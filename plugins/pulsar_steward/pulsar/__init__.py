"""The Pulsar admin API: a reader that cannot write, and a writer that only `apply` may use."""
