"""How long an editor waits for `dsfc lsp` at each keystroke: python -m benchmarks.editor.

A line is typed, letter by letter, into the middle of a text of at least 200 lines, made of shipped
specs, and taken away again. After each letter the mistakes of the new text are awaited, then the
completions at the place. The times are those of the whole way, through the protocol and back; on a
machine where others are at work (see `load`) they hold what the server waited for a core, and
`processor_ms` says what it worked for both answers. Linux only. What was found is written to
`benchmarks/results/editor.json`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

LINES = 200
"""The least length of the text; the longest shipped spec has 21 lines."""

TYPED = "  typed = sigmoid(W_K u · q) * exp(-η) + 1/2"
INTO = "mixer generalized_attn"
ROUNDS = 3
FILE = Path(__file__).parent / "results" / "editor.json"


def text_of_lines(lines: int = LINES) -> str:
    """Returns shipped specs below each other, `INTO` among them, until there are enough lines."""
    text = ""
    specs = sorted(file.name for file in files("dsfc.specs").iterdir() if file.name[-4:] == ".dsf")
    first = ["qkv.dsf", "generalized_attn.dsf"]
    for name in [*(n for n in specs if n < first[1] and n not in first), *first, *specs]:
        own = (files("dsfc.specs") / name).read_text(encoding="utf-8")
        if own not in text:
            text += f"{own}\n"
        if text.count("\n") >= lines and INTO in text:
            break
    return text


def keystrokes(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields the text after each letter typed and taken away, with the place of the caret."""
    lines = text.split("\n")
    into = next(k for k, it in enumerate(lines) if it.startswith(INTO))
    line = lines.index("}", into)
    lengths = [*range(1, len(TYPED) + 1), *range(len(TYPED) - 1, -1, -1)]
    for length in lengths:
        yield "\n".join([*lines[:line], TYPED[:length], *lines[line:]]), line, length


async def measure(rounds: int = ROUNDS) -> dict[str, Any]:
    """Returns the milliseconds of every keystroke, to the diagnostics and to the completions."""
    client = LanguageClient("benchmark", "1")
    said: asyncio.Queue[None] = asyncio.Queue()

    def published(params: lsp.PublishDiagnosticsParams) -> None:
        said.put_nowait(None)

    client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)
    text = text_of_lines()
    diagnosed, completed, worked = [], [], []
    with TemporaryDirectory() as folder:
        uri = (Path(folder) / "long.dsf").as_uri()
        known = _children()
        await client.start_io(sys.executable, "-m", "dsfc", "lsp")
        await client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
        server = _only_child(known)
        client.initialized(lsp.InitializedParams())
        item = lsp.TextDocumentItem(uri, "dsf", 0, text)
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        await said.get()
        number = 0
        for _round in range(rounds):
            for changed, line, column in keystrokes(text):
                number += 1
                before = _processor_seconds(server)
                began = time.perf_counter()
                client.text_document_did_change(
                    lsp.DidChangeTextDocumentParams(
                        lsp.VersionedTextDocumentIdentifier(version=number, uri=uri),
                        [lsp.TextDocumentContentChangeWholeDocument(changed)],
                    )
                )
                await said.get()
                diagnosed.append(time.perf_counter() - began)
                place = lsp.Position(line, column)
                await client.text_document_completion_async(
                    lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), place)
                )
                completed.append(time.perf_counter() - began)
                worked.append(_processor_seconds(server) - before)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]  # pygls leaves it untyped
    return {
        "lines": text.count("\n"),
        "mixers": text.count("\nmixer ") + text.startswith("mixer "),
        "keystrokes": number,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "pygls": version("pygls"),
        "to_diagnostics_ms": _summary(diagnosed),
        "to_completions_ms": _summary(completed),
        "processor_ms": _summary(worked),
    }


def _children() -> set[int]:
    """The processes that this one has started; Linux only."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def _only_child(known: set[int]) -> int:
    (pid,) = _children() - known
    return pid


def _processor_seconds(pid: int) -> float:
    """What the threads of a process have worked, without what they waited for a core."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _summary(seconds: list[float]) -> dict[str, float]:
    tenths = statistics.quantiles(seconds, n=10)
    found = {"median": statistics.median(seconds), "p90": tenths[8], "most": max(seconds)}
    return {name: round(1000 * value, 1) for name, value in found.items()}


if __name__ == "__main__":
    found = asyncio.run(measure())
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
