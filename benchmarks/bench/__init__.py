"""How long Steward takes on clusters of three sizes, beside what it could be measured against: ``make bench``."""
