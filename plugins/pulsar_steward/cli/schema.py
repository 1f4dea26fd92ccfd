"""``steward schema``: prints the JSON schema of the output of ``steward checkup --json``."""

import typer

from pulsar_steward.report.checkup.document import schema_text


def schema() -> None:
    """Prints the JSON schema of `checkup --json`."""
    typer.echo(schema_text(), nl=False)
