"""``/metrics/`` of a made-up broker: of the series of a real 4.0.7 those that operators look at, and how they are told.

Names, labels and kinds are those of a real broker, which ``tests/contract`` holds them to.
"""
