"""The Spark jobs: collect brokers' documents in parallel, and look for trouble in what was collected."""
