"""Runs commands of dsfc while every event that Python audits is looked at: a program, not a test.

    python audited.py REPORT '[["check", "a.dsf"], …]'      the commands, one after the other
    python audited.py REPORT '["lsp"]'                      one, on the real standard streams

A hook can never be taken off again, hence a process of its own. Into REPORT go the exit codes and
what was seen (https://docs.python.org/3/library/audit_events.html lists what is audited):

- every event with a canary in what it is given, however deep: names of the specs hold `canary`,
  their strings and comments hold `venom`;
- every start of a process, every connection, every library loaded, and every change of a file
  outside the current folder, whatever it is given.

Each is told with who asked for it: the innermost frame, and the innermost one of dsfc.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

NAME, TEXT = "canary", "venom"
STARTS = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess.Popen")
CONNECTS = ("socket.connect", "socket.bind", "socket.sendto", "urllib.Request", "webbrowser.open")
UNPICKLES = ("pickle.find_class",)
CHANGES = ("os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate")


def words(value: Any, depth: int = 6) -> Iterator[str]:
    """All text in what an event is given: programs are read to their names and constants."""
    match value:
        case str():
            yield value
        case bytes() | bytearray():
            yield value.decode("latin-1")
        case CodeType():
            yield from (value.co_name, value.co_filename, *value.co_names, *value.co_varnames)
            for constant in value.co_consts:
                yield from words(constant, depth)
        case ast.AST():
            yield ast.dump(value)
        case os.PathLike():
            yield os.fspath(value)
        case dict() if depth:
            for item in value.items():
                yield from words(item, depth - 1)
        case tuple() | list() | set() | frozenset() if depth:
            for item in value:
                yield from words(item, depth - 1)


class Watch:
    """The hook, and what it has seen: each kind of event once for each place it comes from."""

    def __init__(self, folder: str) -> None:
        self.seen: dict[tuple[str, ...], dict[str, Any]] = {}
        self._folder = os.path.join(folder, "")
        self._busy = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._busy:
            return
        self._busy = True  # what is asked below is audited too
        try:
            for kind, what in self._kinds(event, arguments):
                frame = sys._getframe(1)
                found = {"event": event, "kind": kind, "asks": _name(frame), "dsfc": _own(frame)}
                self.seen.setdefault(tuple(found.values()), {**found, "what": what[:300]})
        finally:
            self._busy = False

    def _kinds(self, event: str, arguments: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
        """What is to be told of an event; most often nothing."""
        if event in (*STARTS, *CONNECTS, *UNPICKLES):
            yield "always", repr(arguments)
        for path in self._changed(event, arguments):
            if not os.path.abspath(path).startswith(self._folder) and path != os.devnull:
                yield "outside", path
        for text in words(arguments):
            for kind in (NAME, TEXT):
                if (at := text.lower().find(kind)) >= 0:
                    yield kind, text[max(at - 60, 0) : at + 200]

    def _changed(self, event: str, arguments: tuple[Any, ...]) -> Iterator[str]:
        """The files that an event writes."""
        if event == "open":
            path, _, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if isinstance(path, str | bytes) and writes:
                yield os.fsdecode(path)
        elif event in CHANGES:
            # A descriptor stands for the folder of a relative path, which nothing here uses.
            yield from (os.fsdecode(it) for it in arguments if isinstance(it, str | bytes))


def _name(frame: FrameType | None) -> str:
    if frame is None:
        return ""
    return f"{frame.f_globals.get('__name__', '')}:{frame.f_code.co_name}"


def _own(frame: FrameType | None) -> str:
    """The innermost frame of dsfc, or of a module that it wrote."""
    while frame is not None and not _name(frame).startswith(("dsfc.", "dsfc_emitted_")):
        frame = frame.f_back
    # The name of an emitted module ends in a hash of where it lies.
    return _name(frame) if frame is None or "emitted_" not in _name(frame) else "emitted"


def main(report: str, commands: list[Any]) -> None:
    """Runs commands under the hook and writes the report."""
    from dsfc.cli import commands as dsfc

    watch = Watch(os.getcwd())
    sys.addaudithook(watch)
    codes = []
    try:
        for words in [commands] if isinstance(commands[0], str) else commands:
            if words[0] == "python":  # a plant, to see that it is seen
                exec(words[1], {"__name__": "dsfc.planted"})
                continue
            try:
                dsfc(words, prog_name="dsfc")
            except SystemExit as e:
                codes.append(e.code)
    finally:
        with open(report, "w", encoding="utf-8") as file:
            json.dump({"codes": codes, "seen": list(watch.seen.values())}, file)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
