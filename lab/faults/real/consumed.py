"""Subscriptions that look as if they stood still, and are well: they are slow, pause, or have nothing to do."""

from lab.faults.real.applications import consuming, restarted_once, taken, taken_by_two

FAULTS = (
    consuming(
        "one-of-two-is-slow",
        "Healthy: one of two consumers of a Shared subscription takes two seconds for a message, the other one none.",
        taken_by_two({"pause_s": 2.0, "queue": 50}, {}),
        twin_of=("one-of-two-hangs", "one-of-two-hangs-java"),
    ),
    consuming(
        "slow-but-working",
        "Healthy: a consumer that takes half a second for each of 5,000 messages.",
        taken(5_000, pause_s=0.5),
        twin_of=("stalled", "hung-shared-go"),
    ),
    consuming(
        "slow-but-working-java",
        "Healthy: a consumer that takes a tenth of a second for each of 8,000 messages, which are few batches.",
        taken(pause_s=0.1, batch=300),
        client="java",
        twin_of=("hung-shared-java",),
    ),
    consuming(
        "slow-exclusive",
        "Healthy: the consumer of an Exclusive subscription works for half a minute on each batch of hundreds.",
        taken(kind="Exclusive", pause_s=0.08, batch=400),
        batched=True,
        twin_of=("hung-exclusive", "hung-exclusive-java", "hung-exclusive-go"),
    ),
    consuming(
        "slow-key-shared",
        "Healthy: both consumers of a Key_Shared subscription take a second for each message.",
        taken(4_000, kind="Key_Shared", consumers=2, pause_s=1.0),
        client="go",
        batched=False,
        twin_of=("hung-key-shared", "hung-key-shared-java"),
    ),
    consuming(
        "acknowledges-every-20-s",
        "Healthy: a consumer that acknowledges all it took every twenty seconds.",
        taken(1_000, flow=50, acknowledge="later", every_s=20),
        twin_of=("forgets-to-acknowledge",),
    ),
    consuming(
        "acknowledges-every-20-s-java",
        "Healthy: the consumer of a Failover subscription acknowledges all it took every twenty seconds.",
        taken(1_000, flow=50, kind="Failover", acknowledge="later", every_s=20),
        client="java",
        twin_of=("forgets-to-acknowledge-java",),
    ),
    consuming(
        "nothing-to-do",
        "Healthy: two consumers that have consumed everything, and nothing more comes.",
        taken(2_000, consumers=2),
        batched=True,
        twin_of=("hung-shared",),
    ),
    consuming(
        "standing-by",
        "Healthy: of two consumers of a Failover subscription one works and one stands by.",
        taken(1_000, flow=50, kind="Failover", consumers=2),
        twin_of=("hung-failover", "hung-failover-java"),
    ),
    consuming(
        "refused-once",
        "Healthy: a consumer refuses every message at first, and acknowledges it when it comes again.",
        taken(1_000, flow=20, acknowledge="once-again"),
        client="go",
        twin_of=("refused-again-and-again", "refused-again-and-again-go", "refused-while-more-comes"),
    ),
    consuming(
        "refused-once-java",
        "Healthy: a consumer refuses every message at first, and acknowledges it when it comes again.",
        taken(1_000, flow=20, acknowledge="once-again"),
        client="java",
        twin_of=("refused-again-and-again-java",),
    ),
    consuming(
        "starts-anew-and-works",
        "Healthy: a job that ends after ten seconds and begins again, acknowledging what it took.",
        taken(1_000, flow=20, lives_s=10),
        twin_of=("crash-loop", "crash-loop-java"),
    ),
    consuming(
        "deployed-once",
        "Healthy: an application that was started anew once, and works on.",
        restarted_once,
        twin_of=("crash-loop",),
    ),
)
