"""The command line where its script is not installed: ``python -m pulsar_steward.cli``."""

from pulsar_steward.cli.main import main

main()
