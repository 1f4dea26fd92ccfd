"""A check-up of one cluster as people and programs read it: one document, shown in a terminal, as a page, as JSON."""
