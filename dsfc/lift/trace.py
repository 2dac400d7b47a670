"""Imports a user's file, which runs it, and traces the module in it by torch.export."""

from __future__ import annotations

import ast
import inspect
import logging
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dsfc.diagnostics.report import nearest
from dsfc.emit.importing import import_module
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import Where
from dsfc.python_text import parsed

_LENGTHS = (5, 7, 11, 13)
_BATCHES = (17, 19, 23, 29, 31)
"""Sizes of the trace: one is taken that no axis of the module has."""

_WIDTHS = ("d_model", "dim", "d", "hidden_size", "embed_dim", "width", "channels", "n_embd", "H")
"""Names that arguments and attributes call the width of the input by, the likeliest first."""

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in ')


@dataclass
class Trace:
    """A traced module.

    Attributes:
        module: the module, in double precision.
        graph: what it computes.
        arrays: parameters, buffers and constants by the name of their placeholder: the name in
            the module, the tensor, and "parameter", "buffer" or "constant".
        inputs: arguments by placeholder, with a shape in which -1 is the batch and -2 is time.
        length: number of tokens.
        batch: number of sequences.
        outputs: names of what is returned.
    """

    module: nn.Module
    graph: torch.fx.Graph
    arrays: dict[str, tuple[str, torch.Tensor, str]]
    inputs: dict[str, tuple[int, ...]]
    length: int
    batch: int
    outputs: list[str] = field(default_factory=list)


class Lines:
    """Finds the line of the user's code that a traced operation comes from."""

    def __init__(self) -> None:
        """Starts with no file read."""
        self._targets: dict[str, dict[int, list[str | None]]] = {}
        self._library = str(Path(torch.__file__).parent)

    def where(self, node: torch.fx.Node) -> Where | None:
        """Returns the innermost line outside of torch."""
        frames = _FRAME.findall(node.meta.get("stack_trace") or "")
        own = [(f, int(n)) for f, n in frames if not f.startswith((self._library, "<"))]
        if not own:
            return None
        file, line = own[-1]
        names = self._assigned(file).get(line, [])
        return Where(file, line, names[0] if len(names) == 1 else None)

    def names(self, where: Where) -> list[str | None]:
        """Returns the variables that a line assigns several values to."""
        return self._assigned(where.file).get(where.line, [])

    def _assigned(self, file: str) -> dict[int, list[str | None]]:
        if file not in self._targets:
            seen: dict[int, list[str | None]] = {}
            try:
                tree: ast.AST = parsed(Path(file).read_bytes())
            except (OSError, SyntaxError, ValueError):
                tree = ast.Module([], [])
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    target: ast.expr = node.targets[0]
                elif isinstance(node, ast.AnnAssign | ast.AugAssign):
                    target = node.target
                else:
                    continue
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                names = [p.id if isinstance(p, ast.Name) else None for p in parts]
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    seen.setdefault(line, names)
            self._targets[file] = seen
        return self._targets[file]


@contextmanager
def double_precision() -> Iterator[None]:
    """Makes float64 the type of new tensors inside."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what torch.export logs of a refusal from the terminal; its error says it again."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _as_module(function: Any) -> nn.Module:
    """Returns a function as a module; torch.export keeps the lines of what is called `forward`."""

    def forward(self: nn.Module, *args: Any, **options: Any) -> Any:
        return function(*args, **options)

    known = inspect.signature(function)
    if inspect.isfunction(function):
        function.__code__ = function.__code__.replace(co_name="forward")
    owner = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    shown: Any = forward
    shown.__signature__ = known.replace(parameters=[owner, *known.parameters.values()])
    scan: nn.Module = type("Scan", (nn.Module,), {"forward": forward})()
    return scan


def build(path: Path, name: str, arguments: Mapping[str, object]) -> nn.Module:
    """Imports the user's file, which runs it, and makes the module.

    Args:
        path: the file.
        name: a class, a function that returns a module, a module, or a function of tensors.
        arguments: what the class or function is called with.

    Raises:
        CannotLift: it cannot be imported or made, or is no such thing.
    """
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        file = import_module(path)
    except Exception as e:
        raise CannotLift(
            f"importing the file raises {type(e).__name__}: {e}", _line_of(e, path)
        ) from e
    finally:
        sys.path.remove(folder)
    if not hasattr(file, name):
        close = nearest(name, vars(file))
        hint = None if close is None else f"did you mean {close}?"
        raise CannotLift(f"the file has no `{name}`", hint=hint)
    built: Any = vars(file)[name]
    if not isinstance(built, nn.Module):
        if not callable(built):
            raise CannotLift(f"`{name}` is no class, function or module")
        is_scan = not isinstance(built, type) and not arguments and _takes_tensors(built)
        if is_scan:
            built = _as_module(built)
        else:
            _check_arguments(built, name, arguments)
            try:
                with double_precision():
                    built = built(**arguments)
            except Exception as e:
                problem = f"making `{name}` raises {type(e).__name__}: {e}"
                raise CannotLift(problem, _line_of(e, path)) from e
    if not isinstance(built, nn.Module):
        raise CannotLift(f"`{name}` makes no torch.nn.Module")
    with double_precision():
        return built.double().eval()


def _line_of(error: BaseException, path: Path) -> Where | None:
    """The last line of a file that an exception passed."""
    trace, seen = error.__traceback__, None
    while trace is not None:
        if trace.tb_lineno and Path(inspect.getfile(trace)).resolve() == path.resolve():
            seen = Where(str(path), trace.tb_lineno)
        trace = trace.tb_next
    return seen


def _takes_tensors(function: Any) -> bool:
    """Whether each argument without a default is said to be a tensor, or nothing is said."""
    wanted = _required(function)
    said = [str(p.annotation) for p in wanted]
    return bool(wanted) and all(p.endswith(("Tensor", "Tensor'>", "_empty'>")) for p in said)


def _required(function: Any) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in known if p.default is inspect.Parameter.empty and p.kind not in kinds]


def _check_arguments(built: Any, name: str, arguments: Mapping[str, object]) -> None:
    missing = [p.name for p in _required(built) if p.name not in arguments]
    if missing:
        words = " ".join(f"--arg {m}=…" for m in missing)
        raise CannotLift(f"`{name}` wants {', '.join(missing)}", hint=f"say it by {words}")


def numbers_of(module: nn.Module) -> set[int]:
    """Returns every size that parameters, buffers and attributes of a module name."""
    out = {s for t in (*module.parameters(), *module.buffers()) for s in t.shape}
    for part in module.modules():
        out |= {v for v in vars(part).values() if isinstance(v, int)}
        for v in vars(part).values():
            if isinstance(v, tuple | list):
                out |= {s for s in v if isinstance(s, int)}
    return out


def shapes_of(
    module: nn.Module, asked: Mapping[str, Sequence[object]]
) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yields shapes that the inputs may have, the likeliest first; -1 is the batch, -2 is time.

    Args:
        module: the module.
        asked: shapes that the user said, of words `B`, `T` and numbers.
    """
    letters = {"B": -1, "T": -2}
    said = {
        n: tuple(letters[s] if s in letters else int(str(s)) for s in v) for n, v in asked.items()
    }
    names = [p.name for p in _required(module.forward)]
    names += [n for n in said if n not in names]
    if all(n in said for n in names):
        yield {n: said[n] for n in names}
        return
    attributes = {k: v for k, v in vars(module).items() if isinstance(v, int)}
    widths = [attributes[w] for w in _WIDTHS if w in attributes]
    for part in module.modules():
        if isinstance(part, nn.Linear):
            widths.append(part.in_features)
        elif isinstance(part, nn.LayerNorm | nn.RMSNorm):
            widths += list(part.normalized_shape)
        elif isinstance(part, nn.Conv1d):
            widths.append(part.in_channels)
    for tensor in module.parameters():
        widths += list(tensor.shape)
    widths += [v for k, v in attributes.items() if v > 1]
    widths = list(dict.fromkeys(w for w in widths if w > 1)) or [6]
    for width in widths:
        yield {n: said.get(n, (-1, -2, width)) for n in names}


def trace(module: nn.Module, asked: Mapping[str, Sequence[object]]) -> Trace:
    """Traces a module.

    Args:
        module: the module, in double precision.
        asked: shapes of inputs that the user said.

    Raises:
        CannotLift: no input was found that the module takes, or torch.export refuses the module.
    """
    taken = numbers_of(module) | {
        int(str(s)) for v in asked.values() for s in v if str(s).isdigit()
    }
    length = next(n for n in _LENGTHS if n not in taken)
    batch = next(n for n in _BATCHES if n not in taken)
    failure: BaseException | None = None
    for shapes in shapes_of(module, asked):
        inputs = {n: _example(s, batch, length) for n, s in shapes.items()}
        try:
            with double_precision(), torch.no_grad():
                module(**inputs)
        except Exception as e:
            failure = failure or e
            continue
        return _exported(module, shapes, inputs, batch, length)
    words = f"; it raises {type(failure).__name__}: {failure}" if failure else ""
    hint = "say the shapes of the inputs, such as --input x=B,T,64"
    where = _deepest(failure) if failure else None
    raise CannotLift(f"no input was found that the module takes{words}", where, hint)


def _example(shape: tuple[int, ...], batch: int, length: int) -> torch.Tensor:
    sizes = [{-1: batch, -2: length}.get(s, s) for s in shape]
    return torch.randn(sizes, dtype=torch.float64)


def _deepest(error: BaseException) -> Where | None:
    """The last line outside of torch that an exception passed."""
    library, seen, trace = str(Path(torch.__file__).parent), None, error.__traceback__
    while trace is not None:
        file = inspect.getfile(trace)
        if not file.startswith(library) and file != __file__:
            seen = Where(file, trace.tb_lineno)
        trace = trace.tb_next
    return seen


def _exported(
    module: nn.Module,
    shapes: dict[str, tuple[int, ...]],
    inputs: dict[str, torch.Tensor],
    batch: int,
    length: int,
) -> Trace:
    try:
        with double_precision(), _quiet():
            program = torch.export.export(module, (), inputs, strict=False)
    except Exception as e:
        first = str(e).strip().splitlines()[0] if str(e).strip() else "no message"
        raise CannotLift(f"torch.export refuses the module: {first}", _deepest(e)) from e
    signature = program.graph_signature
    arrays: dict[str, tuple[str, torch.Tensor, str]] = {}
    for name, path in signature.inputs_to_parameters.items():
        arrays[name] = path, program.state_dict[path].detach(), "parameter"
    for name, path in signature.inputs_to_buffers.items():
        known = {**program.constants, **program.state_dict}
        arrays[name] = path, known[path].detach(), "buffer"
    for name, path in signature.inputs_to_lifted_tensor_constants.items():
        arrays[name] = path, program.constants[path].detach(), "constant"
    own = [n.name for n in program.graph.nodes if n.op == "placeholder" and n.name not in arrays]
    named = {n: shapes[n] for n in own if n in shapes}
    out = next(n for n in program.graph.nodes if n.op == "output")
    outputs = [str(getattr(o, "name", o)) for o in out.args[0]]
    return Trace(module, program.graph, arrays, named, length, batch, outputs)


def name_of(node: torch.fx.Node) -> str:
    """Returns the name of an operation without its namespace and overload."""
    packet = getattr(node.target, "overloadpacket", None) or getattr(
        node.target, "_overloadpacket", None
    )
    if packet is not None:
        return str(packet).removeprefix("aten.").rpartition(".")[2]
    return str(getattr(node.target, "__name__", node.target))
