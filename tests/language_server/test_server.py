"""One conversation with `dsfc lsp` over its standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TEXT = "mixer m extends generalized_attn {\n param w : d -> h\n η = exp(w uu)\n claim 0 < η\n}\n"


# Emacs and Neovim prefer other units than the protocol's UTF-16; an η takes two of these.
UTF8 = {"general": {"positionEncodings": ["utf-8", "utf-16"]}}


class Editor:
    """The other side of the protocol, written from its description: a header, then JSON."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dsfc", "lsp", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._asked = 0
        self._notes: list[dict[str, Any]] = []

    def tell(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        while "id" not in (message := self._receive()):
            self._notes.append(message)
        assert message["id"] == self._asked
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

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        out = self._process.stdout
        assert out is not None
        length = 0
        while line := out.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(out.read(length))


@pytest.fixture
def editor() -> Iterator[Editor]:
    it = Editor()
    yield it
    it.kill()


def test_a_conversation(editor: Editor, tmp_path: Path) -> None:
    said = editor.ask("initialize", processId=None, rootUri=None, capabilities=UTF8)
    offered = said["result"]["capabilities"]
    providers = ("hover", "completion", "definition", "rename", "documentFormatting", "codeAction")
    assert offered["positionEncoding"] == "utf-8"
    assert all(offered[f"{name}Provider"] not in (None, False) for name in providers)
    editor.tell("initialized")

    uri = (tmp_path / "m.dsf").as_uri()
    text = {"uri": uri, "languageId": "dsf", "version": 1, "text": TEXT}
    editor.tell("textDocument/didOpen", textDocument=text)
    (mistake,) = editor.diagnostics()
    assert mistake["code"] == "E-UNKNOWN-NAME" and "did you mean `u`" in mistake["message"]
    assert mistake["range"] == {
        "start": {"line": 2, "character": 12},
        "end": {"line": 2, "character": 14},
    }

    here = {"textDocument": {"uri": uri}}
    none = {"diagnostics": []}
    (fix,) = editor.ask("textDocument/codeAction", **here, range=mistake["range"], context=none)[
        "result"
    ]
    (edit,) = fix["edit"]["changes"][uri]
    assert edit == {"range": mistake["range"], "newText": "u"}

    changed = TEXT.replace("uu", "u").replace("0 < η", "η < 0")
    version = {"uri": uri, "version": 2}
    editor.tell("textDocument/didChange", textDocument=version, contentChanges=[{"text": changed}])
    found = editor.diagnostics()
    while found == [mistake] or not found:  # what was under way; then typing, then the claims
        found = editor.diagnostics()
    assert [it["code"] for it in found] == ["E-CLAIM"]

    def at(line: int, character: int) -> dict[str, Any]:
        return {**here, "position": {"line": line, "character": character}}

    hover = editor.ask("textDocument/hover", **at(0, 6))["result"]
    assert "Λ_i" in hover["contents"]["value"] and "scalar" in hover["contents"]["value"]
    offers = editor.ask("textDocument/completion", **at(2, 10))["result"]
    assert {"label": "u", "detail": "input u : d"}.items() <= next(
        it for it in offers if it["label"] == "u"
    ).items()
    (base,) = editor.ask("textDocument/definition", **at(0, 20))["result"]
    assert base["uri"].endswith("/specs/generalized_attn.dsf")
    renamed = editor.ask("textDocument/rename", **at(1, 7), newName="W_η")["result"]["changes"]
    assert [it["range"]["start"] for it in renamed[uri]] == [
        {"line": 1, "character": 7},
        {"line": 2, "character": 10},
    ]
    assert (
        "word" in editor.ask("textDocument/rename", **at(1, 7), newName="exp")["error"]["message"]
    )
    options = {"tabSize": 2, "insertSpaces": True}
    (form,) = editor.ask("textDocument/formatting", **here, options=options)["result"]
    assert form["newText"].startswith("mixer m extends generalized_attn {\n  param w")
    assert editor.end() == 0
