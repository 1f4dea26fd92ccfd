"""The planner of transaction coordinators, which brokers never balance themselves."""
