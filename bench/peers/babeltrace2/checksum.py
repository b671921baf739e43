"""The checksum of `bench reader` (bench/src/compare/read/checksum.rs) by babeltrace2's Python bindings.

Usage: checksum.py TRACE; prints the number of events and the checksum.
"""

import struct
import sys

import bt2

MASK = (1 << 64) - 1


class Sum:
    def __init__(self):
        self.bits = 0

    def add(self, value):
        turned = ((self.bits << 5) | (self.bits >> 59)) & MASK
        self.bits = (turned + value) & MASK

    def field(self, field):
        if isinstance(field, (bt2._StructureFieldConst,)):
            for name in field:
                self.field(field[name])
        elif isinstance(field, bt2._ArrayFieldConst):
            for element in field:
                self.field(element)
        elif isinstance(field, bt2._StringFieldConst):
            text = str(field).encode()
            self.add(sum(text) + len(text))
        elif isinstance(field, bt2._RealFieldConst):
            self.add(struct.unpack("<Q", struct.pack("<d", float(field)))[0])
        elif isinstance(field, bt2._IntegerFieldConst):
            self.add(int(field) & MASK)
        else:
            sys.exit(f"no rule for {type(field).__name__}")


def main():
    streams = {}
    count = 0
    for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
        if type(message) is not bt2._EventMessageConst:
            continue
        event = message.event
        count += 1
        total = streams.setdefault((event.stream.trace.name, event.stream.cls.id, event.stream.id), Sum())
        total.add(message.default_clock_snapshot.value)
        for fields in (event.common_context_field, event.specific_context_field, event.payload_field):
            if fields is not None:
                total.field(fields)
    whole = sum(total.bits for total in streams.values()) & MASK
    print(count, f"{whole:016x}")


main()
