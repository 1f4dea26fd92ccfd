"""Trouble that no single look shows: a backlog that grows from one to the next."""

from lab.faults.real.growth import BYTES_A_SECOND, burst, drained, growing, sawtooth, standing, trend
from lab.faults.real.operator import EVICTION, EXCEPTION, HOLD

A_MINUTE: dict[str, object] = {"backlog_growing": {"minimum_minutes": 1}}
SOONER = "The ten minutes over which it has to grow are lowered to one, as a benchmark cannot wait for them."
SLOWER: dict[str, object] = {"backlog_growing": {"minimum_minutes": 1, "warning_bytes_per_second": 100_000}}
LESS = f"{SOONER} So is the rate, from 1 MiB/s to 100 kB/s, as a lab's disk is no place for that."
TOGETHER: dict[str, object] = {
    "backlog_growing": {
        "minimum_minutes": 1,
        "warning_bytes_per_second": 200_000,
        "warning_bytes_per_second_together": 200_000,
    }
}
LESS_TOGETHER = (
    f"{SOONER} So are the rates, of one topic and of all together, to 200 kB/s: a lab's disk is no place for more."
)

GROWING = (
    trend(
        "backlog-growing",
        f"A backlog that grows steadily and will reach its quota within hours. {SOONER}",
        growing(BYTES_A_SECOND, HOLD),
        "backlog-growing",
        policy=A_MINUTE,
    ),
    trend(
        "backlog-growing-eviction",
        f"A backlog that grows steadily and will be evicted within hours. {SOONER}",
        growing(BYTES_A_SECOND, EVICTION),
        "backlog-growing",
        policy=A_MINUTE,
        batched=True,
    ),
    trend(
        "backlog-growing-java",
        f"A backlog that grows steadily and will have its producers refused within the hour. {SOONER}",
        growing(2 * BYTES_A_SECOND, EXCEPTION, 200_000_000),
        "backlog-growing",
        policy=A_MINUTE,
        client="java",
    ),
    trend(
        "growing-without-quota",
        f"A backlog that grows fast, and no quota bounds it. {LESS}",
        growing(200_000),
        "backlog-growing",
        policy=SLOWER,
        client="go",
    ),
    trend(
        "growing-over-partitions",
        f"Five partitions whose backlogs grow by 60 kB/s each, and no quota bounds them. {LESS_TOGETHER}",
        growing(300_000, partitions=5),
        "backlog-growing",
        policy=TOGETHER,
        batched=True,
    ),
    trend(
        "growing-over-partitions-java",
        f"Eight partitions whose backlogs grow by 50 kB/s each, and no quota bounds them. {LESS_TOGETHER}",
        growing(400_000, partitions=8),
        "backlog-growing",
        policy=TOGETHER,
        client="java",
    ),
)

NOT_GROWING = (
    trend(
        "growing-slowly",
        f"Healthy: a backlog that grows so slowly that its quota lasts for days. {SOONER}",
        growing(1000, HOLD),
        policy=A_MINUTE,
        twin_of=("backlog-growing",),
    ),
    trend(
        "sawtooth",
        f"Healthy: a backlog that is consumed as a whole every few seconds. {SOONER}",
        sawtooth(),
        policy=A_MINUTE,
        twin_of=("backlog-growing",),
    ),
    trend(
        "sawtooth-over-partitions",
        f"Healthy: eight partitions whose backlogs are consumed as a whole every few seconds. {LESS_TOGETHER}",
        sawtooth(8),
        policy=TOGETHER,
        client="java",
        twin_of=("growing-over-partitions-java", "growing-over-partitions"),
    ),
    trend(
        "standing-backlog",
        f"Healthy enough: a backlog of 5 MB that nobody adds to. {SOONER}",
        standing,
        policy=A_MINUTE,
        batched=True,
        twin_of=("backlog-growing-eviction", "growing-without-quota"),
    ),
    trend(
        "burst",
        f"Healthy: a backlog that came at once and grows no more. {SOONER}",
        burst,
        policy=A_MINUTE,
        client="go",
        twin_of=("backlog-growing",),
    ),
    trend(
        "drained-slowly",
        f"Healthy: a large backlog that a slow consumer brings down. {SOONER}",
        drained,
        policy=A_MINUTE,
        client="java",
        twin_of=("backlog-growing-java",),
    ),
)

FAULTS = (*GROWING, *NOT_GROWING)
