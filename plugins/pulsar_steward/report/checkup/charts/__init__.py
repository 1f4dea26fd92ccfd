"""The charts of a check-up's page: figures of plotly, each with a table that says the same in words."""
