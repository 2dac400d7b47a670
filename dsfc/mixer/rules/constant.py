"""What initialisers and constants may mention: numbers, sizes and constants.

They are worked out once, when a module is made: there are no tokens then, and a parameter has no
value before its own initialiser has given it one.
"""

from __future__ import annotations

from dsfc.diagnostics.catalogue import Constant, Initialiser
from dsfc.diagnostics.report import Diagnostic
from dsfc.mixer.scope import Scope
from dsfc.source import Span
from dsfc.syntax import ast

_ALLOWED = "it may use numbers, sizes and constants only"
_NO_TOKENS = "it is worked out once, when the module is made: there are no tokens then"
_SHARED = "if the two start from the same value, give that value a name: `const start = …`"
_ITSELF = "nothing starts from itself; write the value it starts from"
_DEFINITION = "a definition may read parameters and inputs; write `const {} = …` for a number"
_MAP = "maps are applied in definitions"
_DROP = "what depends on inputs, parameters or the token is a definition: leave out `const`"
_HELD = (ast.DeclKind.PARAM, ast.DeclKind.BUFFER, ast.DeclKind.ABSTRACT)


def reads_name(scope: Scope, owner: str, name: str, span: Span) -> Diagnostic:
    """Returns the report about an initialiser or constant that reads a name of the mixer."""
    shown = span.text or name
    return _report(scope, owner, f"reads `{shown}`", span, _hint(scope, owner, name, shown))


def reads_time(scope: Scope, owner: str, what: str, span: Span) -> Diagnostic:
    """Returns the report about an initialiser or constant that depends on the token.

    Args:
        scope: names of the mixer.
        owner: the tensor or constant.
        what: how it depends, as a verb and its object.
        span: where it does.
    """
    return _report(scope, owner, what, span, _NO_TOKENS)


def _report(scope: Scope, owner: str, what: str, span: Span, hint: str) -> Diagnostic:
    problem = f"{what}; {_ALLOWED}"
    if owner in scope.program.consts:
        return Constant(span, name=owner, problem=problem, hint=_DROP)
    return Initialiser(span, name=owner, problem=problem, hint=hint)


def _hint(scope: Scope, owner: str, name: str, shown: str) -> str:
    if name == owner:
        return _ITSELF
    if scope.is_definition(name):
        return _DEFINITION.format(shown)
    if scope.kind(name) not in _HELD:
        return _NO_TOKENS
    declared = scope.program.declared[name].decl
    return _MAP if isinstance(declared.type, ast.MapType) else _SHARED
