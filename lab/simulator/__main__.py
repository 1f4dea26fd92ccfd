"""``python -m lab.simulator``: see `lab.simulator.cli`."""

from lab.simulator.cli import main

if __name__ == "__main__":
    main()
