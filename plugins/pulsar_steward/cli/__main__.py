"""Entry point of ``python -m pulsar_steward.cli``, for where the `steward` script is not installed."""

from pulsar_steward.cli.main import main

main()
