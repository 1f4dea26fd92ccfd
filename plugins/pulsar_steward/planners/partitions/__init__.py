"""The planner that gives a topic more partitions."""
