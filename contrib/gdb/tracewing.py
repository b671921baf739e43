"""Adds the command tracewing-last-events to gdb: the last events of the program or core dump at hand.

Load it with `source contrib/gdb/tracewing.py`, for instance from ~/.gdbinit. It runs `tracewing recover`, which must be in
PATH, or be named in the environment variable TRACEWING.

Source of the idea: Wisniewski and Rosenburg, "Efficient, Unified, and Scalable Performance Monitoring for Multiprocessor
Operating Systems", where a call in the debugger prints the last events of a crashed kernel.
"""

import os
import re
import subprocess

import gdb

DEFAULT_COUNT = "20"


class LastEvents(gdb.Command):
    """Print the last events that the program left in tracewing's buffers.

    tracewing-last-events [COUNT] [GLOB]...

    COUNT is the number of events, 20 without it, "all" for all that are there. With one or several GLOBs only events
    whose names match one of them are counted and printed."""

    def __init__(self):
        super().__init__("tracewing-last-events", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        self.dont_repeat()
        words = gdb.string_to_argv(argument)
        count = DEFAULT_COUNT
        if words and (words[0].isdecimal() or words[0] == "all"):
            count = words.pop(0)
        command = [os.environ.get("TRACEWING", "tracewing"), "recover", *source()]
        if count != "all":
            command += ["--count", count]
        for glob in words:
            command += ["--event=" + glob]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except OSError as error:
            raise gdb.GdbError(f"cannot run {command[0]}: {error.strerror}; set TRACEWING to where it is") from error
        for stream, output in ((gdb.STDERR, done.stderr), (gdb.STDOUT, done.stdout)):
            gdb.write(output.decode(errors="replace"), stream)
        if done.returncode != 0:
            raise gdb.GdbError("tracewing recover failed")


def source():
    """What `tracewing recover` is to look into."""
    inferior = gdb.selected_inferior()
    kind = inferior.connection.type if inferior.connection else None
    if kind == "native":
        return ["--pid", str(inferior.pid)]
    if kind == "core":
        files = gdb.execute("info files", to_string=True)
        found = re.search(r"Local core dump file:\s*[`'](.*)', file type", files)
        if found:
            return ["--core", found.group(1)]
    raise gdb.GdbError("there is no program of this machine and no core dump to look into")


LastEvents()
