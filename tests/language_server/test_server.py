"""One conversation with `dsfc lsp` over its standard input and output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from editor import Editor

TEXT = "mixer m extends generalized_attn {\n param w : d -> h\n η = exp(w uu)\n claim 0 < η\n}\n"


# Emacs and Neovim prefer other units than the protocol's UTF-16; an η takes two of these.
UTF8 = {"general": {"positionEncodings": ["utf-8", "utf-16"]}}


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
