"""`steward`: looks at a cluster, says what is wrong and what would be proposed. Changes nothing, anywhere."""
