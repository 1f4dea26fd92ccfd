"""Charts of a check-up's page: plotly figures, each with a table of the same figures."""
