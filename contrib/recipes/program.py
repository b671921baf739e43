"""Calls two functions of different length, and one of them from C, so that Python 3.11 records it."""
import time

def inner(n):
    return sum(i * i for i in range(n))

def outer(seconds):
    end = time.monotonic() + seconds
    calls = 0
    while time.monotonic() < end:
        list(map(inner, [2000] * 10))
        calls += 10
    return calls

print(outer(1))
