"""Clients of Pulsar in several languages that do what a fault needs: the same few kinds of work in each of them."""
