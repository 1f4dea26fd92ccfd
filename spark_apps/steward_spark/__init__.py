"""The Spark jobs: collect brokers' documents in parallel, and diagnose the snapshot."""
