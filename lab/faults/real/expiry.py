"""Times to live over what a subscription has not read: what it reads too slowly, and what it does not lose."""

from lab.faults.fault import Change
from lab.faults.real.ground import Ground
from lab.faults.real.growth import Arrange, apart, trend
from lab.faults.real.operator import recently_shown
from lab.waiting import wait_until

A_MINUTE: dict[str, object] = {"ttl_before_read": {"minimum_minutes": 1}}
SOONER = "The ten minutes over which it has to grow are lowered to one, as a benchmark cannot wait for them."
RATE, SIZE = 50, 1000
WAITING = 5000
TTL_S, DAY_S = 300, 86_400
FLOWS_WITHIN_S = 120.0


def _flowing(ttl_s: int, *, pause_s: float | None) -> Arrange:
    """A hundred seconds of what flows in wait under a TTL, and a consumer that takes so long for each message.

    ``pause_s`` None: there is no consumer.
    """

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        here.admin.set_policy(here.namespace, "messageTTL", ttl_s)
        here.subscription(topic)
        here.send(topic, WAITING, SIZE)
        if pause_s is not None:
            here.take(topic, pause_s=pause_s)
        here.flow(topic, RATE, SIZE)
        wait_until(
            lambda: recently_shown(here.lab).get(topic, {}).get("msgRateIn", 0) > 0,
            f"messages flow into {topic}",
            FLOWS_WITHIN_S,
            1.0,
        )
        return apart()

    return arrange


FAULTS = (
    trend(
        "ttl-before-read",
        f"A consumer reads a fifth of what is published, under a TTL of five minutes. {SOONER}",
        _flowing(TTL_S, pause_s=0.1),
        "ttl-before-read",
        policy=A_MINUTE,
    ),
    trend(
        "ttl-before-read-java",
        f"The same with batches. {SOONER}",
        _flowing(TTL_S, pause_s=0.1),
        "ttl-before-read",
        policy=A_MINUTE,
        client="java",
        batched=True,
    ),
    trend(
        "ttl-read-in-time",
        f"Healthy: the same backlog under the same TTL, and a consumer that catches up. {SOONER}",
        _flowing(TTL_S, pause_s=0.01),
        policy=A_MINUTE,
        twin_of=("ttl-before-read", "ttl-before-read-java"),
    ),
    trend(
        "ttl-far-away",
        f"Healthy enough: a consumer reads a fifth of what is published, under a TTL of a day. {SOONER}",
        _flowing(DAY_S, pause_s=0.1),
        policy=A_MINUTE,
        client="java",
        twin_of=("ttl-before-read", "ttl-before-read-java"),
    ),
    trend(
        "ttl-that-nobody-reads-before",
        f"Healthy enough: a TTL of five minutes clears what nobody is connected to. {SOONER}",
        _flowing(TTL_S, pause_s=None),
        policy=A_MINUTE,
        twin_of=("ttl-before-read", "ttl-before-read-java"),
    ),
)
