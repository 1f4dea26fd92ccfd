"""``steward schema``: the JSON schema of what ``steward checkup --json`` writes."""

import typer

from pulsar_steward.report.checkup.schema import schema_text


def schema() -> None:
    """Prints the JSON schema of `checkup --json`."""
    typer.echo(schema_text(), nl=False)
