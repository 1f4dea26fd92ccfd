"""Time that Steward takes on clusters of two sizes, beside what it could be measured against: ``make bench``."""
