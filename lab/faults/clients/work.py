"""Pieces of work for a client, whatever language it is written in."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

Language = Literal["python", "java", "go"]
Kind = Literal["Exclusive", "Shared", "Failover", "Key_Shared"]
Acknowledging = Literal["each", "every-other", "later", "negatively", "once-again", "never"]

BATCHED_BY_DEFAULT: Mapping[Language, bool] = {"python": False, "java": True, "go": True}
"""Whether a producer batches where nobody says anything: pulsar-client 3.13 for Python does not, the others do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """Sending a number of messages at once; done when the broker has all of them.

    Attributes:
        topic: Its full name.
        count: Of messages; they have 64 keys in turn.
        size: Of each, in bytes.
        batched: Whether the producer batches; None: as its library does by default.
        batch_messages: Most messages of a batch; None: the library's default.
        delay_s: The first is to be delivered after so long, and each other one a second after the one before; 0: at
            once.
    """

    topic: str
    count: int
    size: int = 100
    batched: bool | None = None
    batch_messages: int | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flowing:
    """Messages without end, so many a second.

    Attributes:
        topic: Its full name.
        rate: Messages a second.
        size: Of each, in bytes.
        batched: As of `Sending`.
    """

    topic: str
    rate: int
    size: int = 100
    batched: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """A consumer whose handler treats messages like that, from the first of the topic on, until the client closes.

    Attributes:
        topic: Its full name.
        subscription: Its name.
        kind: Of the subscription.
        queue: Receiver queue; None: the library's default.
        acknowledge: ``each`` after its handler; ``every-other`` only; ``later``: all that was taken, every so often;
            ``negatively``, always, or all but what comes again (``once-again``); ``never``.
        most: Its handler hangs for ever once it took so many; None: never. 0: nothing is ever taken.
        pause_s: How long its handler takes for a message.
        every_s: With ``later``, how often it acknowledges.
        redelivery_s: After how long comes again what was acknowledged negatively.
        lives_s: Its process ends without a word after so long and is started anew, again and again; 0: it lives.
    """

    topic: str
    subscription: str = "s"
    kind: Kind = "Shared"
    queue: int | None = None
    acknowledge: Acknowledging = "each"
    most: int | None = None
    pause_s: float = 0.0
    every_s: float = 0.0
    redelivery_s: float = 1.0
    lives_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Clients that are connected and do nothing.

    Attributes:
        topic: Its full name.
        producers: How many.
        consumers: How many, of the Shared subscription ``s``, each with a receiver queue of one message.
    """

    topic: str
    producers: int = 0
    consumers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transacting:
    """Transactions with one message each, for the client in Java alone; done when `count` of them are committed.

    The first one connects a client of its own to all transaction coordinators.

    Attributes:
        topic: Its full name.
        count: Transactions that are committed one after another.
        left_open: Transactions that are opened before all others, and never ended by the client.
        rate: Transactions a second that are opened and committed afterwards, until the end.
        timeout_s: Time after which the coordinator aborts an open one.
    """

    topic: str
    count: int = 0
    left_open: int = 0
    rate: int = 0
    timeout_s: float = 3600.0


Work = Sending | Flowing | Taking | Crowd | Transacting


class Clients(Protocol):
    """A process with one client of Pulsar; use it in a ``with`` statement, whose end closes the client."""

    def do(self, work: Work) -> None:
        """Has it done (`Sending`), or begun so that the broker knows of it (all else), to go on until the end.

        Raises:
            NotReachedError: It could not be, or not in time.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
