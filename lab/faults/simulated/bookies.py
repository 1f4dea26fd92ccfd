"""Bookies whose disks fill up, such as are read-only, and ledgers that lost copies."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import cluster, server
from lab.simulator import AuditorSpec, BookieSpec

KNOWN = "the same for real is `bookie-killed-without-another-to-copy-to`; here every figure is known"
NO_LOSS = "no lab loses the last copy of what it was told to keep"
NO_DISK = "a lab's bookie is on the disk of the whole machine, which nothing here may fill"

FAULTS = (
    SimulatedFault(
        name="bookie-disk-fills",
        about="The disk of one of three bookies has 80 % in use, and half a percent more every half an hour.",
        expected=(Expected("bookie-disk", server(1), "1.00 % more each hour: .* in 15.0 h"),),
        specs=(cluster(),),
        servers=tuple((BookieSpec(), BookieSpec(disks_percent=(each,)), BookieSpec()) for each in (79.0, 79.5, 80.0)),
        observations=3,
        minutes_apart=30,
        why=NO_DISK,
        quick=True,
    ),
    SimulatedFault(
        name="bookie-disk-full",
        about="One of two disks of a bookie has 96 % in use: the bookie writes to the other one only.",
        expected=(Expected("bookie-disk", server(0), "96.0 % in use"),),
        specs=(cluster(),),
        servers=((BookieSpec(disks_percent=(96.0, 50.0)), BookieSpec(), BookieSpec()),),
        why=NO_DISK,
    ),
    SimulatedFault(
        name="bookie-read-only",
        about="One of three bookies takes no writes, with room on its disk.",
        expected=(Expected("bookie-disk", server(2), "is read-only: all writes go to the others"),),
        specs=(cluster(),),
        servers=((BookieSpec(), BookieSpec(), BookieSpec(writable=False)),),
        why="the one bookie of a lab is all that it has: read-only, nothing else could be made there",
    ),
    SimulatedFault(
        name="bookie-disk-well-used",
        about="Healthy: the disk of one of three bookies has 80 % in use, as an hour ago; compaction came between.",
        specs=(cluster(),),
        servers=tuple((BookieSpec(), BookieSpec(disks_percent=(each,)), BookieSpec()) for each in (80.0, 82.0, 80.0)),
        observations=3,
        minutes_apart=30,
        why=NO_DISK,
        twin_of=("bookie-disk-fills", "bookie-disk-full", "bookie-read-only"),
    ),
    SimulatedFault(
        name="ledgers-wait-for-copies",
        about="Two audits find 400 ledgers with too few copies; half an hour later 40 of them have all again.",
        expected=(Expected("ledgers-under-replicated", server(0), "at least 360 wait; 25 tries"),),
        specs=(cluster(),),
        servers=(
            (BookieSpec(auditor=AuditorSpec()), BookieSpec(), BookieSpec()),
            (BookieSpec(auditor=AuditorSpec(found=800, audits=2)), BookieSpec(), BookieSpec()),
            (
                BookieSpec(auditor=AuditorSpec(found=800, audits=2)),
                BookieSpec(copied=40, copies_failed=25),
                BookieSpec(),
            ),
        ),
        observations=3,
        minutes_apart=30,
        why=KNOWN,
        quick=True,
    ),
    SimulatedFault(
        name="entries-without-a-copy",
        about="The auditor's periodic check finds three ledgers with an entry of which no copy is left.",
        expected=(Expected("ledgers-under-replicated", server(1), "3 ledgers without any copy of an entry"),),
        specs=(cluster(),),
        servers=((BookieSpec(), BookieSpec(auditor=AuditorSpec(no_copy=3))),),
        why=NO_LOSS,
    ),
    SimulatedFault(
        name="ledgers-have-their-copies-again",
        about="Healthy again: of 400 ledgers that lost a copy, all have been copied since; one try failed.",
        specs=(cluster(),),
        servers=(
            (BookieSpec(auditor=AuditorSpec(found=70, audits=1)), BookieSpec(copied=60), BookieSpec(copied=10)),
            (BookieSpec(auditor=AuditorSpec(found=870, audits=3)), BookieSpec(copied=60), BookieSpec(copied=10)),
            (
                BookieSpec(auditor=AuditorSpec(found=870, audits=3)),
                BookieSpec(copied=290, copies_failed=1),
                BookieSpec(copied=180),
            ),
        ),
        observations=3,
        minutes_apart=30,
        why=KNOWN,
        twin_of=("ledgers-wait-for-copies", "entries-without-a-copy"),
    ),
)
