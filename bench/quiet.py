"""quiet.py - other work on the machine stands still while something is measured. SPDX-License-Identifier: MIT

A session is a program and all it started (setsid; its number is the first process's). Several programs that measure may
prepare side by side: one at a time is quiet, and it stops the sessions it was given, which may be theirs."""
import fcntl
import os
import pathlib
import signal
import tempfile
import time

SETTLE = 1.3  # seconds in which a GPU finishes what stopped processes had launched


def sessions(text):
    """The type of an option --pause."""
    return [int(word) for word in text.split(",")]


def members(session):
    """The processes of a session, this program and its own session apart."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(after_name[3]) == session != os.getsid(0):
                found.append(int(entry.name))
    return found


def tell(stopped, number):
    for session in stopped:
        for process in members(session):
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass


class Quiet:
    """With sessions to stop; with none it does nothing."""

    def __init__(self, stop):
        self.stop = stop or []

    def __enter__(self):
        if self.stop:
            self.lock = open(pathlib.Path(tempfile.gettempdir()) / f"berlu-quiet-{os.getuid()}", "w")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            tell(self.stop, signal.SIGSTOP)
            time.sleep(SETTLE)

    def __exit__(self, *_):
        if self.stop:
            tell(self.stop, signal.SIGCONT)
            self.lock.close()
