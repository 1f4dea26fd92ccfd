"""Trouble made on purpose, each labelled with what must be found in it: `make accuracy` runs all of them."""
