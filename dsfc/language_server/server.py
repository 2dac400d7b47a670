"""The protocol: what an editor asks, handed to the functions of this package, and their answers."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from typing import Any, BinaryIO, cast

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from dsfc.language_server.check import check
from dsfc.language_server.complete import Completion, Sort, complete, word_at
from dsfc.language_server.document import Document
from dsfc.language_server.edits import Edit, fixes, formatted
from dsfc.language_server.findings import Finding, findings
from dsfc.language_server.highlight import Mark, Role, highlight
from dsfc.language_server.hints import hints
from dsfc.language_server.hover import hover
from dsfc.language_server.lookup import definitions
from dsfc.language_server.positions import Units, offset, position
from dsfc.language_server.references import references
from dsfc.language_server.rename import Refused, renamable, rename
from dsfc.language_server.signature import signature
from dsfc.language_server.stream import Bounded
from dsfc.language_server.symbols import Symbol, SymbolKind, symbols
from dsfc.language_server.workspace import Workspace
from dsfc.source import Source, Span

PAUSE = 0.4
"""Seconds without a change after which the text is checked as `dsfc check` does."""

_KINDS = {
    Sort.KEYWORD: lsp.CompletionItemKind.Keyword,
    Sort.NAME: lsp.CompletionItemKind.Variable,
    Sort.AXIS: lsp.CompletionItemKind.TypeParameter,
    Sort.FUNCTION: lsp.CompletionItemKind.Function,
    Sort.MIXER: lsp.CompletionItemKind.Class,
    Sort.MODIFIER: lsp.CompletionItemKind.Interface,
    Sort.SIGN: lsp.CompletionItemKind.Text,
}

_SYMBOLS = {
    SymbolKind.MIXER: lsp.SymbolKind.Class,
    SymbolKind.MODIFIER: lsp.SymbolKind.Interface,
    SymbolKind.AXIS: lsp.SymbolKind.TypeParameter,
    SymbolKind.INPUT: lsp.SymbolKind.Field,
    SymbolKind.PARAM: lsp.SymbolKind.Property,
    SymbolKind.BUFFER: lsp.SymbolKind.Property,
    SymbolKind.STATE: lsp.SymbolKind.Struct,
    SymbolKind.ABSTRACT: lsp.SymbolKind.Function,
    SymbolKind.CONST: lsp.SymbolKind.Constant,
    SymbolKind.DEFINITION: lsp.SymbolKind.Variable,
    SymbolKind.FUNCTION: lsp.SymbolKind.Function,
    SymbolKind.USE: lsp.SymbolKind.Interface,
    SymbolKind.CLAIM: lsp.SymbolKind.Event,
}

_LEGEND = lsp.SemanticTokensLegend([role.value for role in Role], [mark.value for mark in Mark])


def serve(stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
    """Answers an editor until it says that it is done.

    Args:
        stdin: what the editor writes to; standard input by default.
        stdout: what it reads from; standard output by default.
    """
    server = _Server().server
    gc.freeze()  # what is imported stays; looking at it again took as long as a slow keystroke
    bounded = Bounded(sys.stdin.buffer if stdin is None else stdin)
    server.start_io(cast(BinaryIO, bounded), stdout)  # pygls calls these two methods and no other


class _Answered:
    """A request that has its answer already."""


class _Protocol(LanguageServerProtocol):
    """The protocol of pygls, in which a request that makes no sense is answered too."""

    def structure_message(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - as in pygls
        """Returns a message by its type; a request that has none is answered with an error."""
        try:
            return super().structure_message(data)
        except JsonRpcException as e:
            if "method" not in data or not isinstance(data.get("id"), int | str):
                raise
            self._send_response(data["id"], error=e.to_response_error())
            return _Answered()

    def handle_message(self, message: Any) -> None:  # noqa: ANN401 - whatever JSON is
        """Hands a message to who answers it."""
        if isinstance(message, _Answered):
            return
        if not hasattr(message, "jsonrpc"):
            raise JsonRpcInvalidRequest("no message of the protocol, or one that is too long")
        super().handle_message(message)


class _Server:
    """The handlers of one connection."""

    def __init__(self) -> None:
        # The whole text at each change: a spec is short, and pygls cuts lines where we do not.
        sync = lsp.TextDocumentSyncKind.Full
        self.server = LanguageServer(
            "dsfc", version("dsfc"), text_document_sync_kind=sync, protocol_cls=_Protocol
        )
        self._workspace = Workspace()
        self._checks: dict[str, asyncio.Task[None]] = {}
        for method, (handler, options) in self._handlers().items():
            # pygls puts attributes on what it is given, which a bound method does not take.
            self.server.feature(method, options)(partial(handler))

    def _handlers(self) -> dict[str, tuple[Callable[[Any], Any], Any]]:
        """Who answers what, and the options that are said of it to the editor."""
        quick = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
        return {
            lsp.TEXT_DOCUMENT_DID_OPEN: (self._opened, None),
            lsp.TEXT_DOCUMENT_DID_CHANGE: (self._changed, None),
            lsp.TEXT_DOCUMENT_DID_SAVE: (self._files_changed, None),
            lsp.TEXT_DOCUMENT_DID_CLOSE: (self._closed, None),
            lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: (self._files_changed, None),
            lsp.TEXT_DOCUMENT_HOVER: (self._hover, None),
            lsp.TEXT_DOCUMENT_COMPLETION: (self._complete, lsp.CompletionOptions(["\\"])),
            lsp.TEXT_DOCUMENT_DEFINITION: (self._definition, None),
            lsp.TEXT_DOCUMENT_FORMATTING: (self._format, None),
            lsp.TEXT_DOCUMENT_RENAME: (self._rename, None),
            lsp.TEXT_DOCUMENT_PREPARE_RENAME: (self._renamable, None),
            lsp.TEXT_DOCUMENT_CODE_ACTION: (self._fixes, quick),
            lsp.TEXT_DOCUMENT_REFERENCES: (self._references, None),
            lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (self._symbols, None),
            lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: (self._highlight, _LEGEND),
            lsp.TEXT_DOCUMENT_INLAY_HINT: (self._hints, None),
            lsp.TEXT_DOCUMENT_SIGNATURE_HELP: (
                self._signature,
                lsp.SignatureHelpOptions(["(", "[", ","]),
            ),
        }

    # Texts

    def _opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        self._take(params.text_document.uri, params.text_document.text)

    def _changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        self._take(params.text_document.uri, params.content_changes[-1].text)

    def _closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        name = _name(params.text_document.uri)
        self._workspace.close(name)
        self._stop(name)
        self._say(params.text_document.uri, ())

    def _files_changed(self, params: Any) -> None:  # noqa: ANN401 - of several notifications
        """Reads again what may have looked a name up in a file that changed."""
        self._workspace.refresh()
        for name in self._workspace.names():
            document = self._workspace.get(name)
            if document is not None:
                self._look_at(_uri(name), document)

    def _take(self, uri: str, text: str) -> None:
        self._look_at(uri, self._workspace.change(_name(uri), text))

    def _look_at(self, uri: str, document: Document) -> None:
        """Says what is wrong with the writing and the types at once, and the rest later."""
        self._say(uri, findings(document.source, document.diagnostics))
        name = _name(uri)
        self._stop(name)
        if document.parsed:
            self._checks[name] = asyncio.ensure_future(self._check(uri, document))

    async def _check(self, uri: str, document: Document) -> None:
        await asyncio.sleep(PAUSE)
        self._say(uri, await check(document))

    def _stop(self, name: str) -> None:
        running = self._checks.pop(name, None)
        if running is not None:
            running.cancel()

    def _say(self, uri: str, findings: Iterable[Finding]) -> None:
        shown = [self._diagnostic(uri, finding) for finding in findings]
        self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown))

    # Questions

    async def _hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        document, at = self._asked(params)
        # A mixer is derived for it; who types meanwhile is not to wait.
        shown = None if document is None else await asyncio.to_thread(hover, document, at)
        if shown is None:
            return None
        text = lsp.MarkupContent(lsp.MarkupKind.Markdown, shown.markdown)
        return lsp.Hover(text, self._range(shown.span))

    def _complete(self, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document, at = self._asked(params)
        if document is None:
            return []
        word = word_at(document.source, at)
        return [self._completion(completion, word) for completion in complete(document, at)]

    def _definition(self, params: lsp.DefinitionParams) -> list[lsp.Location]:
        document, at = self._asked(params)
        spans = () if document is None else definitions(document, at)
        return [lsp.Location(_uri(span.source.name), self._range(span)) for span in spans]

    def _references(self, params: lsp.ReferenceParams) -> list[lsp.Location]:
        document, at = self._asked(params)
        if document is None:
            return []
        introduced = params.context.include_declaration
        spans = references(document, at, self._workspace.specs(), introduced)
        return [lsp.Location(_uri(span.source.name), self._range(span)) for span in spans]

    def _symbols(self, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = self._workspace.get(_name(params.text_document.uri))
        return [] if document is None else [self._symbol(symbol) for symbol in symbols(document)]

    def _highlight(self, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        """Each word by its distance from the one before, as the protocol has it."""
        document = self._workspace.get(_name(params.text_document.uri))
        roles, marks = list(Role), list(Mark)
        data: list[int] = []
        row = last = 0
        for word in () if document is None else highlight(document):
            line, column = position(word.span.source, word.span.start, self._units)
            bits = sum(1 << marks.index(mark) for mark in word.marks)
            after = column if line > row else column - last
            width = self._units.width(word.span.text)
            data += [line - row, after, width, roles.index(word.role), bits]
            row, last = line, column
        return lsp.SemanticTokens(data)

    def _hints(self, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        document = self._workspace.get(_name(params.text_document.uri))
        if document is None:
            return []
        return [
            lsp.InlayHint(
                lsp.Position(*position(document.source, hint.offset, self._units)),
                hint.text,
                kind=lsp.InlayHintKind.Type,
                tooltip=hint.more,
            )
            for hint in hints(document, *self._edges(document.source, params.range))
        ]

    def _signature(self, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        document, at = self._asked(params)
        shown = None if document is None else signature(document, at)
        if shown is None:
            return None
        signatures = [
            lsp.SignatureInformation(
                one.label,
                documentation=one.meaning,
                parameters=[lsp.ParameterInformation(p) for p in (*one.indices, *one.arguments)],
            )
            for one in shown.signatures
        ]
        return lsp.SignatureHelp(signatures, shown.active, shown.part)

    def _format(self, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        document = self._workspace.get(_name(params.text_document.uri))
        edit = None if document is None else formatted(document)
        return [] if edit is None else [self._edit(edit)]

    def _renamable(self, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        document, at = self._asked(params)
        try:
            return None if document is None else self._range(renamable(document, at))
        except Refused:
            return None

    def _rename(self, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        document, at = self._asked(params)
        if document is None:
            return None
        try:
            edits = rename(document, at, params.new_name, self._workspace.specs())
        except Refused as e:
            raise JsonRpcInvalidParams(str(e)) from None
        changes: dict[str, list[lsp.TextEdit]] = {}
        for edit in edits:
            changes.setdefault(_uri(edit.span.source.name), []).append(self._edit(edit))
        return lsp.WorkspaceEdit(changes)

    def _fixes(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        document = self._workspace.get(_name(uri))
        if document is None:
            return []
        start, end = self._edges(document.source, params.range)
        return [
            lsp.CodeAction(
                fix.title,
                lsp.CodeActionKind.QuickFix,
                [
                    self._diagnostic(uri, shown)
                    for shown in findings(document.source, [fix.diagnostic])
                ],
                is_preferred=True,
                edit=lsp.WorkspaceEdit({uri: [self._edit(fix.edit)]}),
            )
            for fix in fixes(document, start, end)
        ]

    # Questions that share fields, no class.
    def _asked(self, params: lsp.TextDocumentPositionParams | Any) -> tuple[Document | None, int]:  # noqa: ANN401
        """The text and the offset that a question is about."""
        document = self._workspace.get(_name(params.text_document.uri))
        return document, 0 if document is None else self._offset(document.source, params.position)

    # Places, in the units that were agreed on

    @property
    def _units(self) -> Units:
        return Units(self.server.workspace.position_encoding or Units.UTF16)

    def _offset(self, source: Source, at: lsp.Position) -> int:
        return offset(source, at.line, at.character, self._units)

    def _range(self, span: Span) -> lsp.Range:
        edges = (position(span.source, at, self._units) for at in (span.start, span.end))
        return lsp.Range(*(lsp.Position(line, column) for line, column in edges))

    def _edges(self, source: Source, part: lsp.Range) -> tuple[int, int]:
        return self._offset(source, part.start), self._offset(source, part.end)

    def _symbol(self, symbol: Symbol) -> lsp.DocumentSymbol:
        return lsp.DocumentSymbol(
            symbol.name,
            _SYMBOLS[symbol.kind],
            self._range(symbol.span),
            self._range(symbol.place),
            detail=symbol.detail,
            children=[self._symbol(child) for child in symbol.children] or None,
        )

    def _edit(self, edit: Edit) -> lsp.TextEdit:
        return lsp.TextEdit(self._range(edit.span), edit.text)

    def _diagnostic(self, uri: str, finding: Finding) -> lsp.Diagnostic:
        related = [
            lsp.DiagnosticRelatedInformation(lsp.Location(uri, self._range(span)), text)
            for span, text in finding.labels
        ]
        severity = (
            lsp.DiagnosticSeverity.Error if finding.error else lsp.DiagnosticSeverity.Information
        )
        return lsp.Diagnostic(
            self._range(finding.span),
            finding.message,
            severity=severity,
            code=finding.code,
            source="dsfc",
            related_information=related or None,
        )

    def _completion(self, completion: Completion, word: Span) -> lsp.CompletionItem:
        # Editors leave out what does not begin as what was typed: `et` and `η` both mean η.
        as_typed = completion.ascii if word.text.isascii() else completion.label
        return lsp.CompletionItem(
            completion.label,
            kind=_KINDS[completion.sort],
            detail=completion.detail or None,
            filter_text=as_typed if as_typed != completion.label else None,
            text_edit=lsp.TextEdit(self._range(word), completion.label),
        )


def _name(uri: str) -> str:
    """The path of a file; of a text without one its URI, which is no absolute path."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return path or uri


def _uri(name: str) -> str:
    return uris.from_fs_path(name) or name if name.startswith("/") or name[1:2] == ":" else name
