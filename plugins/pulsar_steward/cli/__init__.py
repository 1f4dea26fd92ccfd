"""`steward`: looks at a cluster, says what is wrong and what would be proposed; can halt changes, and makes none."""
