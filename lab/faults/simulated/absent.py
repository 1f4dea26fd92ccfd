"""Subscriptions that nobody is connected to, over days."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import cluster
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

DAYS = "days without a consumer"
A_DAY = 1440


def _left(*backlogs: int, consumers: tuple[int, ...] = (), **policies: object) -> tuple[ClusterSpec, ...]:
    """A cluster a look: a subscription `audit` with that backlog, and so many consumers, beside one that is well."""
    there = dict(enumerate(consumers))
    return tuple(_with(backlog, there.get(look, 0), policies) for look, backlog in enumerate(backlogs))


def _with(backlog: int, consumers: int, policies: dict[str, object]) -> ClusterSpec:
    reader = SubscriptionSpec("billing", consumers=2, backlog=25, unacked=20, rate_out=2.0)
    audit = SubscriptionSpec("audit", consumers=consumers, backlog=backlog, rate_out=2.0 if consumers else 0.0)
    topic = TopicSpec("events", producers=2, subscriptions=(reader, audit), rate_in=2.0)
    return cluster(NamespaceSpec("shop/events", topics=(topic,), policies=policies))


GROWING = tuple(2_000 + 1_500 * day for day in range(10))

FAULTS = (
    SimulatedFault(
        name="subscription-abandoned",
        about="Nobody has been connected to a subscription for nine days, and its backlog grew every day.",
        expected=(Expected("subscription-abandoned", "^persistent://shop/events/events subscription audit$"),),
        specs=_left(*GROWING),
        observations=10,
        minutes_apart=A_DAY,
        why=DAYS,
    ),
    SimulatedFault(
        name="subscription-of-a-nightly-job",
        about="Healthy: nobody is connected whenever it is looked at; a job comes every night and takes what is there.",
        specs=_left(2_000, 2_300, 2_600, 2_100, 2_200, 2_500, 1_900, 2_000, 2_400, 2_600),
        observations=10,
        minutes_apart=A_DAY,
        why=DAYS,
        twin_of=("subscription-abandoned",),
    ),
    SimulatedFault(
        name="subscription-of-a-weekly-job",
        about="Healthy: a job comes once a week, and was there seven days ago.",
        specs=_left(2_000, 3_500, 1_100, *GROWING[:7], consumers=(0, 0, 1)),
        observations=10,
        minutes_apart=A_DAY,
        why=DAYS,
        twin_of=("subscription-abandoned",),
    ),
    SimulatedFault(
        name="subscription-that-expires",
        about="Healthy: nobody comes for what a time to live of ten days clears.",
        specs=_left(*GROWING, message_ttl_in_seconds=864_000),
        observations=10,
        minutes_apart=A_DAY,
        why=DAYS,
        twin_of=("subscription-abandoned",),
    ),
)
