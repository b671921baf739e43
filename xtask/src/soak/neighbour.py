"""A hostile user of the same machine: tries every recorder it finds, and those whose secret has leaked to it; talks nonsense,
holds connections, guesses names, and plants links where a recorder may write. Runs until standard input closes.

    neighbour.py FOLDER    a folder that all users can write, in which recordings are made; sockets whose names have leaked are
                           listed in FOLDER/leaked
"""

import os
import random
import select
import socket
import struct
import sys

folder = sys.argv[1]
held = []
counts = {"connected": 0, "refused": 0, "sent": 0, "planted": 0}


def recorders():
    """Paths where recorders listen or may listen: what the kernel lists to every user, names to guess, and what has leaked."""
    with open("/proc/net/unix") as table:
        paths = {line.split()[-1] for line in table if "tracewing" in line}
    for name in os.listdir("/tmp"):
        if name.startswith("tracewing"):
            guesses = ["socket", "join", "control", "%032x" % random.getrandbits(128)]
            paths.update(os.path.join("/tmp", name, guess) for guess in guesses)
    try:
        with open(os.path.join(folder, "leaked")) as leaked:
            paths.update(leaked.read().strip().split(":"))
    except OSError:
        pass
    return sorted(path for path in paths if path)


def connect(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setblocking(False)
    try:
        connection.connect(path)
        counts["connected"] += 1
        return connection
    except OSError:
        counts["refused"] += 1
        connection.close()
        return None


def hello():
    """As a program says it, of one version or another."""
    fields = struct.pack("<IIBBH", random.randrange(3, 7), os.getpid(), 1, random.randrange(4), 0)
    return b"twHi" + fields + os.urandom(8) + bytes(random.choice([0, 8, 16]))


def nonsense():
    kind = random.choice([b"twHi", b"twCl", b"twDn", b"twJo", b""])
    return random.choice([hello(), kind + os.urandom(random.randrange(0, 200))])


def plant(name):
    try:
        os.symlink("/etc/passwd", os.path.join(folder, name))
        counts["planted"] += 1
    except OSError:
        pass


def attack():
    for path in recorders():
        connection = connect(path)
        if connection is None:
            continue
        try:
            for _ in range(random.randrange(1, 4)):
                connection.send(nonsense())
                counts["sent"] += 1
        except OSError:
            pass
        held.append(connection)
    while len(held) > random.randrange(0, 600):
        held.pop(random.randrange(len(held))).close()
    plant(random.choice([".tracewing.json.new", "tracewing.json", "metadata", "t", "user", f"r{random.randrange(9999)}"]))


# A thousand times a second, as a user with other things to do, too.
while not select.select([sys.stdin], [], [], 0.001)[0]:
    attack()
print(", ".join(f"{count} {what}" for what, count in counts.items()))
