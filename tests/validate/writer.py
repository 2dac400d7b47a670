"""A process that writes and reads tiles: `python writer.py FOLDER KEY NUMBER ROUNDS`.

It prints how often a table was not one that a writer wrote whole.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dsfc.validate.tune import Cache


def broken(cache: Cache, key: str, number: int, rounds: int) -> int:
    """Writes tables of a thousand rows and counts those read that are not whole."""
    count = 0
    for turn in range(rounds):
        value = 1 + (rounds * number + turn) % 4096
        rows = {("f", str(k), 4, "cuda", 0): (value, value, value, value) for k in range(1000)}
        if not cache.put(key, rows):
            raise SystemExit("a table was not written")
        found = cache.get(key)
        count += found is None or len(found) != 1000 or len(set(found.values())) != 1
    return count


if __name__ == "__main__":
    folder, key, number, rounds = sys.argv[1:]
    print(broken(Cache(Path(folder)), key, int(number), int(rounds)))
