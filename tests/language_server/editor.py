"""An editor, as far as `dsfc lsp` can see."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SERVER = ("-m", "dsfc", "lsp", "--stdio")


class Editor:
    """The other side of the protocol, written from its description: a header, then JSON."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *(command or SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._asked = 0
        self._notes: list[dict[str, Any]] = []

    def tell(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._asked += 1
        self.send({"id": self._asked, "method": method, "params": params})
        message = self.answer()
        assert message["id"] == self._asked
        return message

    def answer(self) -> dict[str, Any]:
        """The next answer to what was asked."""
        while "id" not in (message := self._receive()):
            self._notes.append(message)
        return message

    def diagnostics(self) -> list[dict[str, Any]]:
        """The next that the server publishes."""
        note = self._notes.pop(0) if self._notes else self._receive()
        assert note["method"] == "textDocument/publishDiagnostics"
        return note["params"]["diagnostics"]

    def end(self) -> int:
        self.ask("shutdown")
        self.tell("exit")
        return self._process.wait(timeout=60)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def write(self, data: bytes) -> None:
        """Sends bytes, whatever they are."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message of the protocol."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def close(self) -> int:
        """Goes away without a word; gives the exit code."""
        self._process.communicate(timeout=60)
        return self._process.returncode

    def _receive(self) -> dict[str, Any]:
        out = self._process.stdout
        assert out is not None
        length = 0
        while line := out.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(out.read(length))
