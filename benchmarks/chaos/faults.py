"""Scenarios of runs: which fault, at which point, under which answer; all of it follows from the run's seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Literal

from benchmarks.chaos.detour import Ambush, Answer, Meanwhile, Reset, Trouble, Truncated
from benchmarks.chaos.worker import Jump, Line, Outage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OUTSIDE = "http://192.0.2.7:8080/admin/v2/namespaces"
"""An address that is nobody's (RFC 5737)."""

Kind = Literal[
    "none", "request", "cluster", "worker", "stopped", "database", "clock", "tampering", "trigger", "two", "halt",
    "policy", "repointed", "identity", "losing", "cleared",
]  # fmt: skip
Answered = Literal[
    "approved",
    "some steps",
    "rejected",
    "no answer",
    "malformed",
    "another text",
    "expired",
    "superseded",
    "never asked",
]


@dataclass(frozen=True)
class Fault:
    """One kind of trouble.

    Attributes:
        name: As the table names it.
        kind: Which part of a run it befalls.
        weight: How often it is drawn.
        about: What happens, in a line.
    """

    name: str
    kind: Kind
    weight: int
    about: str


EACH_LINE = "worker killed at each line"
STATUSES = (401, 404, 409, 412, 429, 500, 503)

FAULTS: tuple[Fault, ...] = (
    Fault("none", "none", 6, "nothing goes wrong"),
    *(Fault(str(status), "request", 4, f"one to three requests are answered {status}") for status in STATUSES),
    Fault("307 loop", "request", 4, "requests are redirected to themselves"),
    Fault("redirect outside", "request", 4, "a request is redirected to a host outside the cluster"),
    Fault("redirect elsewhere", "request", 6, "a changing request is redirected to another namespace's path"),
    Fault("reset", "request", 5, "the connection is reset before the broker gets the request"),
    Fault("reply lost", "request", 8, "the broker does as asked, and its reply is lost"),
    Fault("204 without effect", "request", 6, "a changing request is answered 204, and nothing is done"),
    Fault("truncated JSON", "request", 5, "half of an answer's body is missing"),
    Fault("broker killed", "cluster", 4, "SIGKILL for one of the brokers, right before a request"),
    Fault("broker restarted", "cluster", 3, "one of the brokers is stopped, and started again"),
    Fault("broker paused", "cluster", 5, "SIGSTOP for one of the brokers, SIGCONT when the run is over"),
    Fault("ZooKeeper paused", "cluster", 5, "SIGSTOP for ZooKeeper, SIGCONT six seconds later"),
    Fault("bookie read-only", "cluster", 3, "the only bookie takes no writes until the run is over"),
    Fault("worker killed", "worker", 24, "SIGKILL at a line between the intent and the outcome"),
    Fault("worker killed twice", "worker", 8, "and the one that takes over as well"),
    Fault("worker stopped", "stopped", 16, "SIGSTOP at such a line, SIGCONT two to nine seconds later"),
    Fault("worker stopped and given up", "stopped", 12, "the same, and another one takes over before it goes on"),
    Fault(EACH_LINE, "worker", 0, "SIGKILL at lines of apply and ledger in between, one after the other"),
    Fault("database gone before a commit", "database", 10, "PostgreSQL ends as in a crash, right before a commit"),
    Fault("database gone after a commit", "database", 8, "and right after one, of which the worker never hears"),
    Fault("clock jumps", "clock", 8, "the worker's clock jumps by up to three hours, forth or back"),
    Fault("plan tampered with", "tampering", 5, "the recorded plan names another broker or value"),
    Fault("answer tampered with", "tampering", 5, "the recorded answer is put off, widened or turned into a yes"),
    Fault("row removed", "tampering", 5, "a row or a link of the chain is removed"),
    Fault("row inserted", "tampering", 5, "an approval is inserted by another hand"),
    Fault("trigger in the database", "trigger", 6, "a trigger turns the recorded rejection into an approval"),
    Fault("policy gone", "policy", 6, "the worker has a looser policy than the one under which was asked"),
    Fault("cluster repointed", "repointed", 6, "another cluster answers than the one that the plan is for"),
    Fault("two workers of a run", "two", 8, "a worker that was given up, and the one that took over, at once"),
    Fault("two runs of a plan", "two", 6, "two runs that were both answered act on the same plan at once"),
    Fault("two names", "two", 6, "two runs act at once, by two names of the same brokers"),
    Fault("subscription made anew", "identity", 6, "what is to be deleted is made anew after the answer, or is reset"),
    Fault("unloaded archive", "losing", 6, "a step lowers the retention of an archive that no broker has loaded"),
    Fault("replicator behind", "losing", 6, "a step evicts by a quota what was never replicated"),
    Fault("task cleared", "cleared", 6, "the task asks anew while it waits, and the text of before is answered"),
    Fault("halted", "halt", 6, "somebody says stop in the middle"),
    Fault("halted by another name", "halt", 6, "the same, by another name of the same brokers"),
)

ANSWERS: tuple[tuple[Answered, int], ...] = (
    ("approved", 70),
    ("some steps", 10),
    ("rejected", 4),
    ("no answer", 3),
    ("malformed", 3),
    ("another text", 3),
    ("expired", 4),
    ("superseded", 4),
    ("never asked", 2),
)

FORBIDDING = frozenset({"tampering", "trigger", "policy", "repointed", "cleared"})
"""Kinds of faults after which nothing may be changed, whatever was answered."""

POSTGRES_SHARE = 0.4
"""Of the runs whose fault does not need it."""

WRITES_SHARE = 0.6
"""Of the faults that wait for a request: these wait for one that changes something."""

MOST_LINES = 3000
"""About as many lines of the library run between an intent and its outcome."""

MOST_COMMITS = 12
MOST_REQUESTS = 15
MOST_READINGS = 12


@dataclass(frozen=True)
class Scenario:
    """One run, as its seed has it.

    Attributes:
        number: From 1.
        fault: What befalls it.
        answer: What a person answers.
        postgres: Whether the ledger is PostgreSQL's, else SQLite's.
        random: For everything else that is drawn.
        line: The very line at which the worker is killed, where each is tried.
    """

    number: int
    fault: Fault
    answer: Answered
    postgres: bool
    random: Random
    line: Line | None = None

    @property
    def permits(self) -> bool:
        """True if anything may be changed."""
        return self.answer in {"approved", "some steps"} and self.fault.kind not in FORBIDDING


def scenarios(seed: int, runs: int) -> list[Scenario]:
    """So many runs; every fault comes once before the rest is drawn by weight."""
    draw = Random(seed)
    once = draw.sample([fault for fault in FAULTS if fault.weight], sum(fault.weight > 0 for fault in FAULTS))
    drawn = once + draw.choices(FAULTS, [fault.weight for fault in FAULTS], k=max(runs - len(once), 0))
    return [_scenario(number, fault, draw) for number, fault in enumerate(drawn[:runs], start=1)]


def at_each_line(lines: Sequence[Line], seed: int, first: int) -> list[Scenario]:
    """A run for each of these lines, at which the worker is killed; numbered from `first`."""
    draw = Random(seed)
    fault = next(each for each in FAULTS if each.name == EACH_LINE)
    return [
        Scenario(number, fault, "approved", postgres=False, random=Random(draw.getrandbits(64)), line=line)
        for number, line in enumerate(lines, start=first)
    ]


def _scenario(number: int, fault: Fault, draw: Random) -> Scenario:
    answers, weights = zip(*ANSWERS, strict=True)
    answer = draw.choices(answers, weights)[0]
    if fault.kind in {*FORBIDDING, "two", "stopped", "losing"}:
        answer = "rejected" if fault.kind == "trigger" else "approved"
    postgres = fault.kind == "database" or draw.random() < POSTGRES_SHARE
    return Scenario(number, fault, answer, postgres, Random(draw.getrandbits(64)))


def ambush(scenario: Scenario, cluster: Callable[[str, Random], None], halt: Callable[[], None]) -> Ambush | None:
    """Trouble on the way to the brokers; None: there is none.

    Args:
        scenario: The run.
        cluster: Does to the cluster what a fault of this name means.
        halt: Says stop.
    """
    random, name = scenario.random, scenario.fault.name
    times = random.randint(1, 3)
    troubles: dict[str, tuple[Trouble, int]] = {
        "cluster": (Meanwhile(lambda: cluster(name, random)), 1),
        "halt": (Meanwhile(halt), 1),
        "307 loop": (Answer(307, "same"), 30),
        "redirect outside": (Answer(307, OUTSIDE), 1),
        "redirect elsewhere": (Answer(307, "elsewhere"), 1),
        "reset": (Reset(forwarded=False), times),
        "reply lost": (Reset(forwarded=True), 1),
        "204 without effect": (Answer(204), 1),
        "truncated JSON": (Truncated(), times),
        **{str(status): (Answer(status), times) for status in STATUSES},
    }
    found = troubles.get(scenario.fault.kind) or troubles.get(name)
    if found is None:
        return None
    always = {"204 without effect": True, "redirect elsewhere": True, "truncated JSON": False}
    writes = always.get(name, random.random() < WRITES_SHARE)
    number = random.randint(1, 2) if writes else random.randint(1, MOST_REQUESTS)
    return Ambush(found[0], writes, number, found[1])


def kill_at(scenario: Scenario) -> int | None:
    """The line at which the worker is killed, if it is."""
    return scenario.random.randint(1, MOST_LINES) if scenario.fault.kind in {"worker", "stopped"} else None


def stopped_seconds(scenario: Scenario) -> float | None:
    """For how long a stopped worker sleeps, if it is one."""
    return scenario.random.uniform(2, 9) if scenario.fault.kind == "stopped" else None


def jump(scenario: Scenario) -> Jump | None:
    """Jump of the worker's clock; None: it does not jump."""
    if scenario.fault.kind != "clock":
        return None
    return Jump(
        scenario.random.randint(2, MOST_READINGS), scenario.random.choice((-1, 1)) * scenario.random.uniform(5, 10_800)
    )


def outage(scenario: Scenario, server: int) -> Outage | None:
    """Time of the end of the database's server; None: it does not end."""
    if scenario.fault.kind != "database":
        return None
    moment: Literal["before", "after"] = "before" if "before" in scenario.fault.name else "after"
    return Outage(scenario.random.randint(1, MOST_COMMITS), moment, server)
