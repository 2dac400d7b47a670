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


@pytest.mark.ci
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


SHOWN = """mixer m "𝑥" extends qkv {
  state S : h × n × p
  score(a, b) = a · b
  S = S[i-1] + k ⊗ v
  z = score(q, S) * exp(q · k)
  y = z * 2
}
"""


def words(data: list[int], text: str, legend: dict[str, list[str]]) -> dict[str, str]:
    """The words of semantic tokens with their types, from columns in UTF-16."""
    assert len(data) % 5 == 0
    found, line, column = {}, 0, 0
    lines = [it.encode("utf-16-le") for it in text.split("\n")]
    for at in range(0, len(data), 5):
        down, along, width, kind, marks = data[at : at + 5]
        line, column = line + down, along if down else column + along
        word = lines[line][2 * column : 2 * (column + width)].decode("utf-16-le")
        assert marks < 1 << len(legend["tokenModifiers"])
        found[word] = legend["tokenTypes"][kind]
    return found


@pytest.mark.ci
def test_what_an_editor_shows_of_a_text_without_mistakes_and_with(
    editor: Editor, tmp_path: Path
) -> None:
    said = editor.ask("initialize", processId=None, rootUri=None, capabilities={})["result"]
    legend = said["capabilities"]["semanticTokensProvider"]["legend"]
    assert "\\" in said["capabilities"]["completionProvider"]["triggerCharacters"]
    editor.tell("initialized")
    uri = (tmp_path / "m.dsf").as_uri()
    here = {"textDocument": {"uri": uri}}

    def write(method: str, text: str) -> None:
        whole = {"uri": uri, "languageId": "dsf", "version": 1, "text": text}
        editor.tell(method, textDocument=whole, contentChanges=[{"text": text}])

    def ask(method: str, **params: Any) -> Any:
        return editor.ask(f"textDocument/{method}", **here, **params)["result"]

    write("textDocument/didOpen", SHOWN)
    for mistake in ("", "  w = = S * (\n", "mixer {\n"):
        text = SHOWN.replace("  y =", f"{mistake}  y =")
        row = 5 + mistake.count("\n")
        write("textDocument/didChange", text)

        kinds = words(ask("semanticTokens/full")["data"], text, legend)
        expected = {"m": "class", "qkv": "class", "score": "function", "exp": "function"}
        assert expected.items() <= kinds.items()
        assert kinds["S"] == "variable" and kinds["h"] == "typeParameter"
        assert kinds["state"] == "keyword" and kinds["⊗"] == "operator"
        assert kinds["2"] == "number" and kinds['"𝑥"'] == "string"

        (mixer,) = ask("documentSymbol")
        assert [it["name"] for it in mixer["children"]] == ["S", "score", "S", "z", "y"]
        assert mixer["selectionRange"]["start"] == {"line": 0, "character": 6}

        start, end = {"line": 0, "character": 0}, {"line": row + 1, "character": 0}
        hints = ask("inlayHint", range={"start": start, "end": end})
        assert [it["label"] for it in hints] == [": h × p", ": h × p"]
        assert hints[-1]["position"] == {"line": row, "character": 3}

        z = {"line": 4, "character": 2}
        places = ask("references", position=z, context={"includeDeclaration": True})
        ranges = [it["range"]["start"] for it in places]
        assert ranges == [z, {"line": row, "character": 6}]
        used = ask("references", position=z, context={"includeDeclaration": False})
        assert used == places[1:]

        shown = ask("signatureHelp", position={"line": 4, "character": 16})
        assert shown["activeParameter"] == 1 and shown["activeSignature"] == 0
        assert shown["signatures"][0]["label"] == "score(a, b)"
        assert shown["signatures"][0]["parameters"][1]["label"] == [9, 10]
        hover = ask("hover", position={"line": 3, "character": 17})
        assert "outer product" in hover["contents"]["value"]

        write("textDocument/didChange", text.replace("y = z", "y = \\ot"))
        offers = ask("completion", position={"line": row, "character": 9})
        (sign,) = (it for it in offers if it["filterText"] == "\\otimes")
        edges = ({"line": row, "character": column} for column in (6, 9))
        replaced = dict(zip(("start", "end"), edges, strict=True))
        assert sign["textEdit"] == {"newText": "⊗", "range": replaced}
        write("textDocument/didChange", SHOWN)
    assert editor.end() == 0


@pytest.fixture
def opened(editor: Editor, tmp_path: Path) -> str:
    """The URI of a text that the editor has open."""
    editor.ask("initialize", processId=None, rootUri=None, capabilities={})
    editor.tell("initialized")
    uri = (tmp_path / "m.dsf").as_uri()
    text = {"uri": uri, "languageId": "dsf", "version": 1, "text": TEXT}
    editor.tell("textDocument/didOpen", textDocument=text)
    editor.diagnostics()
    return uri


MALFORMED: tuple[Any, ...] = (
    {"line": -1, "character": 0},
    {"line": 0, "character": -1},
    {"line": 2**40, "character": 0},
    {"line": 10**400, "character": 0},
    {"line": "second", "character": 0},
    {"line": None, "character": 0},
    {"line": 0},
    {},
    [],
    [0, 0],
    None,
    "0:0",
    7,
)
ODD = ({"line": 2**31 - 1, "character": 0}, {"line": 0, "character": 2**31 - 1})
"""Positions that the protocol allows, outside of any text."""


@pytest.mark.full
@pytest.mark.timeout(40)
def test_malformed_positions_are_answered(editor: Editor, opened: str) -> None:
    here: dict[str, Any] = {"textDocument": {"uri": opened}, "newName": "other"}
    here["context"] = {"includeDeclaration": True, "triggerKind": 1, "isRetrigger": False}
    for method in (
        *("hover", "completion", "definition", "prepareRename", "rename"),
        *("references", "signatureHelp"),
    ):
        for place in MALFORMED:
            answer = editor.ask(f"textDocument/{method}", **here, position=place)
            assert answer["error"]["code"] == -32602, place
        assert "error" in editor.ask(f"textDocument/{method}", **here)
        for place in ODD:
            answer = editor.ask(f"textDocument/{method}", **here, position=place)
            assert method == "rename" or "result" in answer
    assert editor.end() == 0


@pytest.mark.ci
@pytest.mark.timeout(40)
def test_malformed_requests_are_answered(editor: Editor, opened: str) -> None:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": -5, "character": 0}}
    here = {"textDocument": {"uri": opened}}
    none: dict[str, Any] = {"diagnostics": []}
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("textDocument/codeAction", {**here, "range": whole, "context": none}),
        ("textDocument/codeAction", {**here, "range": whole}),
        ("textDocument/hover", {"textDocument": 5, "position": ODD[0]}),
        ("textDocument/hover", {}),
        ("textDocument/inlayHint", {**here, "range": whole}),
        ("textDocument/references", {**here, "position": ODD[0]}),
        ("textDocument/documentSymbol", {}),
        ("textDocument/semanticTokens/full", {"textDocument": 5}),
        ("textDocument/formatting", {"textDocument": {}}),
        ("textDocument/rename", {**here, "position": ODD[0], "newName": {"a": [1]}}),
    )
    for method, params in asked:
        assert "error" in editor.ask(method, **params), (method, params)
    for message in (b"{", b"[]", b"5", b"null", b"{}", b"\xff\xfe", b"[" * 100_000):
        editor.write(b"Content-Length: %d\r\n\r\n%s" % (len(message), message))
    for bare in ({"id": 77, "method": "textDocument/hover"}, {"id": 78, "method": 5}):
        editor.send(bare)
    assert {editor.answer()["id"], editor.answer()["id"]} == {77, 78}
    assert editor.end() == 0


@pytest.mark.full
@pytest.mark.timeout(40)
def test_a_message_that_is_too_long_is_skipped(editor: Editor, opened: str) -> None:
    long = 20 * 1024**2
    editor.write(b"Content-Length: %d\r\n\r\n" % long + b" " * long)
    editor.write(b"Content-Length: " + b"9" * 10_000 + b"\r\n")
    editor.write(b"X-Header: " + b"x" * 10_000_000 + b"\r\n\r\n")
    answer = editor.ask("textDocument/hover", textDocument={"uri": opened}, position=ODD[0])
    assert "result" in answer
    assert editor.end() == 0


@pytest.mark.share(2)
@pytest.mark.timeout(40)
@pytest.mark.parametrize("length", [10**12, 10**30])
def test_a_length_that_is_never_sent_ends_no_server(editor: Editor, length: int) -> None:
    editor.write(b"Content-Length: %d\r\n\r\nno more than this" % length)
    assert editor.close() == 0
