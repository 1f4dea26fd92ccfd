"""The planner of transaction coordinators; brokers never balance these themselves."""
