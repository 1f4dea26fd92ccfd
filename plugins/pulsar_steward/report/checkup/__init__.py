"""Report of a check-up of one cluster: one document, rendered for a terminal, as an HTML page and as JSON."""
