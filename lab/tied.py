"""Run as a script: asks Linux to kill this process when its parent ends, then becomes the given command.

``python tied.py PARENT_PID COMMAND...``: the pid stays the same, and the request survives the exec (prctl(2)).
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ties, checks that the parent did not end in between, and becomes the command."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(sys.argv[1]):
            sys.exit("the process that started this one is gone")
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - the arguments come from the lab, and no shell is wanted


if __name__ == "__main__":
    main()
