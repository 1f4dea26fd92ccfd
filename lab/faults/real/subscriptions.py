"""Subscriptions that stand still though they have consumers."""

from typing import Any

from lab.faults.fault import RealFault
from lab.faults.real.applications import Arrange, consuming, taken, taken_by_two

HANG: dict[str, Any] = {"most": 1, "acknowledge": "never"}
"""The handler never returns from its first message."""


def _stalled(name: str, about: str, arrange: Arrange, **label: Any) -> RealFault:
    return consuming(name, about, arrange, "subscription-stalled", **label)


HUNG = (
    _stalled(
        "stalled",
        "The consumer of a Shared subscription hangs, with a receiver queue of 100 and 5,000 entries behind it.",
        taken(5_000, queue=100, **HANG),
        batched=False,
    ),
    _stalled(
        "hung-shared",
        "The consumer of a Shared subscription hangs; its 8,000 messages are a handful of batches.",
        taken(**HANG),
        batched=True,
    ),
    _stalled(
        "hung-exclusive",
        "The consumer of an Exclusive subscription hangs; its 8,000 messages are a handful of batches.",
        taken(kind="Exclusive", **HANG),
        batched=True,
    ),
    _stalled(
        "hung-failover",
        "The active one of two consumers of a Failover subscription hangs.",
        taken(kind="Failover", consumers=2, **HANG),
    ),
    _stalled(
        "hung-key-shared",
        "Both consumers of a Key_Shared subscription hang.",
        taken(kind="Key_Shared", consumers=2, **HANG),
        batched=False,
    ),
    _stalled("hung-shared-java", "The consumer of a Shared subscription hangs.", taken(**HANG), client="java"),
    _stalled(
        "hung-exclusive-java",
        "The consumer of an Exclusive subscription hangs after 300 messages that it acknowledged.",
        taken(most=300, kind="Exclusive"),
        client="java",
    ),
    _stalled(
        "hung-failover-java",
        "The only consumer of a Failover subscription hangs, while messages keep coming.",
        taken(2_000, kind="Failover", flow=20, **HANG),
        client="java",
    ),
    _stalled(
        "hung-key-shared-java",
        "Both consumers of a Key_Shared subscription hang after 200 messages each.",
        taken(kind="Key_Shared", consumers=2, most=200),
        client="java",
        batched=False,
    ),
    _stalled("hung-shared-go", "The consumer of a Shared subscription hangs.", taken(**HANG), client="go"),
    _stalled(
        "hung-exclusive-go",
        "The consumer of an Exclusive subscription hangs, while messages keep coming.",
        taken(3_000, kind="Exclusive", flow=20, **HANG),
        client="go",
        batched=False,
    ),
)

HALF_HUNG = (
    _stalled(
        "one-of-two-hangs",
        "One of two consumers of a Shared subscription hangs with a full receiver queue, the other one works.",
        taken_by_two(HANG, {}),
    ),
    _stalled(
        "one-of-two-hangs-java",
        "One of two consumers of a Shared subscription hangs with a full receiver queue, the other one works.",
        taken_by_two(HANG, {}),
        client="java",
    ),
)

UNACKNOWLEDGED = (
    _stalled(
        "forgets-to-acknowledge",
        "A consumer that works on each message and acknowledges none, while messages keep coming.",
        taken(2_000, flow=20, acknowledge="never"),
    ),
    _stalled(
        "forgets-to-acknowledge-java",
        "A consumer that works on each message and acknowledges none, while batches keep coming.",
        taken(2_000, flow=50, kind="Failover", acknowledge="never"),
        client="java",
    ),
)

AGAIN_AND_AGAIN = (
    _stalled(
        "refused-again-and-again",
        "A consumer refuses every message, and gets it again a second later.",
        taken(1_500, acknowledge="negatively"),
        batched=True,
    ),
    _stalled(
        "refused-again-and-again-java",
        "The consumers of a Key_Shared subscription refuse every message, and get it again.",
        taken(1_500, kind="Key_Shared", consumers=2, acknowledge="negatively"),
        client="java",
        batched=False,
    ),
    _stalled(
        "refused-again-and-again-go",
        "A consumer refuses every message, and gets it again a second later.",
        taken(1_500, acknowledge="negatively"),
        client="go",
    ),
    _stalled(
        "refused-while-more-comes",
        "A consumer refuses each message once, while more keep coming: pulsar-client 3.13 for Python puts off what was"
        " refused with every further refusal, so that nothing ever comes again.",
        # Longer than the messages ever pause on a busy machine: in a pause of a second all came again, and were taken.
        taken(1_000, flow=20, acknowledge="once-again", redelivery_s=20),
    ),
    _stalled(
        "crash-loop",
        "A consumer crashes ten seconds after each start, and has acknowledged nothing by then.",
        taken(5_000, acknowledge="never", lives_s=10),
        batched=True,
    ),
    _stalled(
        "crash-loop-java",
        "The consumer of an Exclusive subscription crashes fifteen seconds after each start, with its first message.",
        taken(5_000, kind="Exclusive", lives_s=15, **HANG),
        client="java",
    ),
)

FAULTS = (*HUNG, *HALF_HUNG, *UNACKNOWLEDGED, *AGAIN_AND_AGAIN)
