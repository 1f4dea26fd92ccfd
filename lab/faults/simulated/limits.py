"""Rates that make producers and consumers wait, which looks like slow bookies and like stuck consumers; and twins."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import at, cluster, strained
from lab.simulator import ClusterSpec, LatencySpec, NamespaceSpec, SubscriptionSpec, TopicSpec

SLOW = LatencySpec(20.0, slow_percent=10, stalled_percent=5)
DISPATCH = "dispatchThrottlingRateInMsg"


def _published(rate: float) -> ClusterSpec:
    """A topic of whose 10 messages/s it takes so many, with nearly all slow entries of a broker with slow writes."""
    limit = {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1}
    slips = TopicSpec("slips", producers=3, rate_in=rate, message_bytes=200, slow_entries=115, stalled_entries=58)
    namespace = NamespaceSpec(
        "shop/print", bundles=4, topics=(slips,), policies={"publishMaxMessageRate": {"local": limit}}, owner=1
    )
    return cluster(namespace, broker_1=strained(writes=SLOW))


def _dispatched(
    member: str, *, rate_out: float, backlog: int, policies: dict[str, object] | None = None, **settings: str
) -> ClusterSpec:
    """A subscription that dispatch rates held back 738 times, by the member of its statistics that counts it."""
    pager = SubscriptionSpec("pager", consumers=2, backlog=backlog, rate_out=rate_out, told=((member, 738),))
    pages = TopicSpec("pages", producers=2, subscriptions=(pager,), rate_in=rate_out)
    return cluster(NamespaceSpec("shop/alerts", topics=(pages,), policies=policies or {}), configuration=settings)


def _own(name: str, messages: int, seconds: int) -> dict[str, object]:
    """A dispatch rate of a namespace."""
    return {name: {"local": {DISPATCH: messages, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": seconds}}}


BY_SUBSCRIPTION = "dispatchThrottledMsgEventsBySubscriptionLimit"
STALLED = _dispatched(
    BY_SUBSCRIPTION, rate_out=0.0, backlog=9_000, policies=_own("subscriptionDispatchRate", 1, seconds=600)
)

FAULTS = (
    SimulatedFault(
        name="publishing-slow-at-a-publish-rate",
        about="A topic takes all of its namespace's publish rate, and a broker's slow entries are its own.",
        expected=(
            Expected("publish-slow", at(1), r"cause: a limit of a rate.*10 messages/s.*by the namespace.*Besides"),
            Expected("limit-reached", "/slips$", "10 messages/s"),
            Expected("bookie-thread-busy", at(1)),
        ),
        specs=(_published(10.0),),
        observations=2,
        why="which ledger is written to slowly cannot be chosen",
    ),
    SimulatedFault(
        name="stalled-at-a-dispatch-rate",
        about="A namespace lets each subscription have a message in ten minutes: one stands still.",
        expected=(
            Expected("subscription-stalled", "/pages ", "cause: .*of a subscription .*by the namespace.*738"),
            Expected("limit-reached", "/pages$", "Subscription pager"),
        ),
        specs=(STALLED,),
        why="that nothing is delivered in the minute that a look is of is a matter of luck",
    ),
    SimulatedFault(
        name="stalled-at-a-dispatch-rate-that-was-not-drilled",
        about="The brokers' rate of a topic holds a subscription back, of which only their metrics tell.",
        expected=(
            Expected("subscription-stalled", "/pages ", "cause: .*of a topic .*by the brokers.*738"),
            Expected("limit-reached", "/pages$", "dispatch rate of a topic"),
        ),
        specs=(
            _dispatched(
                "dispatchThrottledMsgEventsByTopicLimit",
                rate_out=0.0,
                backlog=9_000,
                dispatchThrottlingRatePerTopicInMsg="1",
            ),
        ),
        policy={"collect": {"drilled_topics": 0}},
        why="that nothing is delivered in the minute that a look is of is a matter of luck",
    ),
    SimulatedFault(
        name="below-a-publish-rate",
        about="The same topic takes 9 of 10 messages/s: bookies are the cause, and no limit is.",
        expected=(
            Expected("publish-slow", at(1), "cause: bookies"),
            Expected("bookie-thread-busy", at(1)),
        ),
        specs=(_published(9.0),),
        observations=2,
        why="which ledger is written to slowly cannot be chosen",
    ),
    SimulatedFault(
        name="held-back-at-peaks",
        about="Healthy: a dispatch rate holds a subscription back now and then, and 20 entries wait for it.",
        specs=(
            _dispatched(
                BY_SUBSCRIPTION, rate_out=90.0, backlog=20, policies=_own("subscriptionDispatchRate", 100, seconds=1)
            ),
        ),
        why="the twin of a made-up cluster",
        twin_of=("stalled-at-a-dispatch-rate", "stalled-at-a-dispatch-rate-that-was-not-drilled"),
    ),
)
