"""``python -m lab``: see `lab.cli`."""

from lab.cli import main

if __name__ == "__main__":
    main()
