"""Small changes of an emitted text, one at a time, wherever it computes.

Each mutant changes one operator, number, mask or order in the functions that do arithmetic. The
reference is left alone: it is the judge.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator

from dsfc.backends.shared.section import section

COMPUTES = re.compile(
    r"_(forward|backward)_(recurrent|chunked)\w*|_carry\w*|_decays?\w*|_log_decay\w*|_scan\w*"
    r"|_leaf_gradients\w*|_straddle\w*|_split\w*|_join\w*|_stack|_own|_accumulate|_fir|_last|_sum\w*"
    r"|_(levels|halves|tail|scores|early|late|corners|until|since|width|turns|compose|conjugates)"
    r"|_(series|moments|powers|table|power|kernel|convolve|correlate|lags|spectrum|signal|fitted)"
    r"|_(reach|solved|move)"
    r"|_(spread|advance|by_rows|rows|packed|replaced|counts|kept|stopped)"
)
SWAPS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
}
# Changes that no result can show, each with the reason.
EQUIVALENT = (
    r"i % chunk == 0",  # how many states are kept is a matter of memory, if it is consistent
    r"min\(chunk, max\(length, ",  # a longer chunk is padded with zeros
    r"max\(BLOCK // ",  # how much is computed at once
    r"^-3$",  # the same axis of six counted from the front
    r"max\(-\(-length // chunk\), ",  # one more chunk of zeros
)


def mutants(text: str, functional: str) -> Iterator[tuple[str, str]]:
    """Yields pairs: what was changed, and the changed text."""
    lines = text.splitlines()
    tree = ast.parse(text)
    called = _called(tree)
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or function.name not in called:
            continue
        if function.name != functional and not COMPUTES.fullmatch(function.name):
            continue
        head, tail = lines[: function.lineno - 1], lines[function.end_lineno :]
        for number, node in enumerate(ast.walk(function)):
            before = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else ""
            if any(re.search(pattern, before) for pattern in EQUIVALENT) and node is not function:
                continue
            for label, change in changes(node):
                twin = copy.deepcopy(function)
                change(next(n for i, n in enumerate(ast.walk(twin)) if i == number))
                where = f"{function.name}, line {getattr(node, 'lineno', function.lineno)}"
                changed = "\n".join((*head, ast.unparse(twin), *tail, ""))
                yield f"{where}: {before} ({label})", changed


def _called(tree: ast.Module) -> set[str]:
    """Returns the functions but for those of the runtime that this module does not call."""
    runtime = set(section().names)
    reads = {
        getattr(node, "name", f"line {node.lineno}"): {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name)
        }
        for node in tree.body
    }
    called = {name for name in reads if name not in runtime}
    waiting = list(called)
    while waiting:
        new = (reads[waiting.pop()] & reads.keys()) - called
        called |= new
        waiting += new
    return called


def changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], object]]]:
    """The changes of one node."""
    match node:
        case ast.BinOp(op=op) if type(op) in SWAPS:
            yield "another operator", lambda n: setattr(n, "op", SWAPS[type(n.op)]())
        case ast.AugAssign(op=op) if type(op) in SWAPS:
            yield "another operator", lambda n: setattr(n, "op", SWAPS[type(n.op)]())
        case ast.UnaryOp(op=ast.USub()):
            yield "without the minus", lambda n: setattr(n, "op", ast.UAdd())
        case ast.Call(func=ast.Attribute(attr="tril"), args=[]):
            yield "less", lambda n: n.args.append(ast.Constant(-1))
        case ast.Call(func=ast.Attribute(attr="tril"), args=[_]):
            yield "more", lambda n: n.args.clear()
        case ast.Call(func=ast.Attribute(attr="exp" | "flip" | "exp_" as name)):
            yield f"without {name}", lambda n: setattr(n.func, "attr", "clone") or n.args.clear()
        case ast.keyword(arg="reverse", value=ast.Constant(True)):
            yield "forwards", lambda n: setattr(n, "value", ast.Constant(False))
        case ast.Slice(step=ast.UnaryOp(op=ast.USub())):
            yield "not reversed", lambda n: setattr(n, "step", None)
        case ast.Slice(lower=ast.Constant(1)):
            yield "from 0", lambda n: setattr(n, "lower", ast.Constant(0))
