"""From a syntax tree to a typed expression: names are bound, functions expanded, shapes checked.

An ill-typed part is reported once and becomes None; whatever contains it is None without another
word. All parts of an expression are looked at, so that one run reports every mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from dsfc.diagnostics.catalogue import (
    Arguments,
    Capture,
    Juxtaposition,
    LagPower,
    Limit,
)
from dsfc.diagnostics.report import Diagnostic, DiagnosticError, Reporter
from dsfc.expr.arithmetic import LONGEST, ZERO, is_long, steepness
from dsfc.expr.build import num, prim
from dsfc.expr.declarations import MapTensor
from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.over_time import Lag
from dsfc.expr.reserved_names import FIRST, TIME, first
from dsfc.expr.table import SPELLINGS
from dsfc.expr.tree import Add, Expr, Mul, Now, Num, Param, Pow, Ref, Size, Time, children
from dsfc.limits import Limits
from dsfc.mixer import calls, indices, shapes
from dsfc.mixer.context import Context
from dsfc.mixer.rules.constant import reads_name, reads_time
from dsfc.mixer.rules.recursion import constant_cycle, function_cycle
from dsfc.mixer.scope import Scope
from dsfc.mixer.shapes import Operand
from dsfc.mixer.times import Clock, Instant, has_lag, is_lag, lag_power
from dsfc.mixer.unknown import unknown_map, unknown_value
from dsfc.source import Span
from dsfc.syntax import ast


class Expressions:
    """Types the expressions of one mixer.

    Attributes:
        scope: names of the mixer.
        definition: returns the typed value of a definition, None if it is ill-typed.
        lift: gives an expression at time i a name, and returns that name.
    """

    def __init__(
        self,
        scope: Scope,
        reporter: Reporter,
        limits: Limits,
        definition: Callable[[str], Expr | None],
        declared: Callable[[str], bool],
        lift: Callable[[str, Expr, Span], str],
    ) -> None:
        self.scope = scope
        self.limits = limits
        self.definition = definition
        self.declared = declared
        self.lift = lift
        self._reporter = reporter
        self._said: set[tuple[str, Span]] = set()
        self._constants: dict[str, Expr | None] = {}
        self._reading: list[str] = []
        self._nodes = 0
        self._depth = 0
        self._heights: dict[Expr, int] = {}
        self._steepness: dict[Expr, int] = {}

    # Reporting

    def add(self, *problems: Diagnostic) -> None:
        """Takes note of a problem; the same code at the same place is said once."""
        for problem in problems:
            if (problem.code, problem.span) not in self._said:
                self._said.add((problem.code, problem.span))
                self._reporter.add(problem)

    def _spend(self, amount: int, span: Span) -> None:
        self._nodes += amount
        if self._nodes > self.limits.expansion_nodes:
            self._give_up("nodes of expanded expressions", self.limits.expansion_nodes, span)

    def _give_up(self, what: str, bound: int, span: Span) -> None:
        """Ends the run: going on would take unbounded time or memory."""
        self.add(Limit(span, what=what, size=f"more than {bound}", bound=str(bound)))
        raise DiagnosticError(self._reporter)

    def _height(self, value: Expr) -> int:
        stack = [value]
        while stack:
            below = children(stack[-1])
            waiting = [e for e in below if e not in self._heights]
            if waiting:
                stack += waiting
            else:
                self._heights[stack.pop()] = 1 + max((self._heights[e] for e in below), default=0)
        return self._heights[value]

    # Expressions

    def type(self, node: ast.Condition, ctx: Context) -> Expr | None:
        """Returns the typed expression of a syntax tree, None after a report."""
        self._spend(1, node.span)
        self._depth += 1
        if self._depth > self.limits.depth:
            self._give_up("height of an expression", self.limits.depth, node.span)
        value = self._type(node, ctx)
        self._depth -= 1
        numbers = () if value is None else (value, *children(value))
        if any(isinstance(x, Num) and is_long(x.value) for x in numbers):
            self._give_up("bits of a number", LONGEST, node.span)
        if isinstance(value, Add | Mul):
            self._spend(len(value.args), node.span)
        if value is not None:
            self.check_height(value, node.span)
        return value

    def check_height(self, value: Expr, span: Span) -> None:
        """Ends the run at an expression too high for the recursions of later stages."""
        if self._height(value) > self.limits.depth:
            self._give_up("height of an expanded expression", self.limits.depth, span)

    def operand(self, node: ast.Condition, ctx: Context) -> Operand | None:
        """Returns the typed expression with its place."""
        value = self.type(node, ctx)
        return None if value is None else Operand(value, node.span)

    def _type(self, node: ast.Condition, ctx: Context) -> Expr | None:
        match node:
            case ast.Num():
                return num(node.value)
            case ast.Name():
                return self.name(node.id, node.span, ctx)
            case ast.Index():
                return indices.index(self, node, ctx)
            case ast.Call():
                return calls.call(self, node, ctx)
            case ast.Apply():
                return self._apply(node, ctx)
            case ast.Neg():
                value = self.type(node.operand, ctx)
                return None if value is None else shapes.negated(value)
            case ast.Pow():
                return self._power(node, ctx)
            case ast.Dot() | ast.Outer() | ast.Mul() if self._maps_in(node.operands, ctx):
                return None
            case ast.Dot():
                return self._chain(
                    node.operands, ctx, lambda a, b, k: shapes.contracted(a, b, self)
                )
            case ast.Outer():
                return self._chain(node.operands, ctx, lambda a, b, k: shapes.outer(a, b, self))
            case ast.Add():
                return self._sum(node, ctx)
            case ast.Mul():
                return self._product(node, ctx)
            case ast.Relation():
                problem = "a comparison has no value"
                self.add(Arguments(node.span, function=node.span.text, problem=problem))
                return None

    def _maps_in(self, nodes: tuple[ast.Expr, ...], ctx: Context) -> bool:
        """Whether a linear map, or a function, is a factor of a product; reports it then."""
        wrong: set[ast.Expr] = set()
        for k, node in enumerate(nodes):
            if not isinstance(node, ast.Name) or node.id in ctx.args:
                continue
            other = nodes[k + 1 if k + 1 < len(nodes) else k - 1]
            text, name = " ".join(other.span.text.split()), node.span.text
            if self._means_map(node, ctx):
                simple = isinstance(other, ast.Name | ast.Call | ast.Index | ast.Apply)
                call = f"`{name} {text}`" if simple else f"`{name}({text})`"
                problem = f"is a linear map; apply it without an operator: {call}"
            elif node.id in self.scope.program.functions:
                lag = f"`sum[j ≤ i]({name}(i - j) * u[j])`"
                problem = f"is a function; call it, `{name}(…)`, or convolve: {lag}"
            else:
                continue
            self.add(Arguments(node.span, function=name, problem=problem))
            wrong.add(node)
        for node in nodes if wrong else ():
            if node not in wrong:
                self.type(node, ctx)
        return bool(wrong)

    def _means_map(self, node: ast.Name, ctx: Context) -> bool:
        return not ctx.constant and node.id not in ctx.args and self.is_map(node.id)

    def _chain(
        self,
        nodes: tuple[ast.Expr, ...],
        ctx: Context,
        join: Callable[[Operand, Operand, int], Expr | None],
    ) -> Expr | None:
        """Operands joined from the left; all are typed before any is joined."""
        operands = [self.operand(node, ctx) for node in nodes]
        left = operands[0]
        for k, right in enumerate(operands[1:]):
            if left is None or right is None:
                return None
            value = join(left, right, k)
            left = None if value is None else left.with_value(value, right)
        return None if left is None else left.value

    def _sum(self, node: ast.Add, ctx: Context) -> Expr | None:
        minus = [op is ast.AddOp.MINUS for op in node.operators]
        state = self.scope.states.get(ctx.owner)
        return self._chain(
            node.operands, ctx, lambda a, b, k: shapes.added(a, b, minus[k], state, self)
        )

    def _product(self, node: ast.Mul, ctx: Context) -> Expr | None:
        def join(left: Operand, right: Operand, k: int) -> Expr | None:
            if node.operators[k] is ast.MulOp.TIMES:
                return shapes.multiplied(left, right, self)
            if right.value is num(0):
                self.add(Arguments(right.span, function="/", problem="divides by zero"))
                return None
            return shapes.divided(left, right, self)

        return self._chain(node.operands, ctx, join)

    def _power(self, node: ast.Pow, ctx: Context) -> Expr | None:
        base, exponent = self.operand(node.base, ctx), self.operand(node.exponent, ctx)
        if base is None or exponent is None:
            return None
        if isinstance(exponent.value, Lag) and is_lag(exponent.value):
            return lag_power(base.value, exponent.value)
        if has_lag(exponent.value):
            self.add(LagPower(exponent.span, exponent=exponent.text))
            return None
        if base.value is ZERO and isinstance(exponent.value, Num) and exponent.value.value < 0:
            self.add(Arguments(node.span, function="^", problem="divides by zero"))
            return None
        out = shapes.power_shape(base, exponent, self)
        if out is None:
            return None
        most = self.limits.exponent
        if steepness(out, self._steepness) > most:
            self._give_up("constant powers, multiplied", most, node.span)
        # Whole powers of numbers are numbers, unless those were too long.
        if isinstance(out, Pow) and isinstance(out.base, Num) and isinstance(out.exponent, Num):
            if out.exponent.value.denominator == 1:
                self._give_up("bits of a number", LONGEST, node.span)
        return out

    def _apply(self, node: ast.Apply, ctx: Context) -> Expr | None:
        name, inner = node.name.text, node.operand
        if not self.is_map(name) and isinstance(inner, ast.Name) and self._means_map(inner, ctx):
            problem = "is a linear map and stands before its argument"
            near = f"{inner.span.text} {node.name.span.text}"
            self.add(Arguments(node.span, function=inner.span.text, problem=problem, nearest=near))
            return None
        arg = self.operand(inner, ctx)
        if ctx.args and name in ctx.args:
            self.add(Juxtaposition(node.name.span, name=name, repair=shapes.ANY_PRODUCT))
            return None
        if ctx.constant and self.scope.kind(name) is not None:
            self.add(reads_name(self.scope, ctx.owner, name, node.name.span))
            return None
        if not self.is_map(name):
            if name not in self.scope.program.declared or self.declared(name):
                self._refuse_apply(node, arg, ctx)
            return None
        return self.apply_map(name, arg, node.span)

    def _refuse_apply(self, node: ast.Apply, arg: Operand | None, ctx: Context) -> None:
        name = node.name.text
        known = (*self.scope.values(), *self.scope.program.functions, *SPELLINGS)
        if name not in known:
            self.add(unknown_map(self.scope, name, node.name.span, arg))
            return
        written = node.name.span.text or name
        if name in SPELLINGS or name in self.scope.program.functions:
            text = " ".join(node.operand.span.text.split())
            what, near = "a function and takes parentheses", f"{written}({text})"
            self.add(Juxtaposition(node.span, name=written, what=what, nearest=near))
            return
        left = self.operand(ast.Name(name, node.name.span), ctx)
        if left is not None:
            way = shapes.product(left, arg)
            self.add(Juxtaposition(node.name.span, name=written, repair=way))

    def is_map(self, name: str) -> bool:
        """Whether the name is declared as a linear map."""
        declared = self.scope.program.declared.get(name)
        return (
            declared is not None
            and declared.kind in (ast.DeclKind.PARAM, ast.DeclKind.BUFFER)
            and isinstance(declared.decl.type, ast.MapType)
        )

    def apply_map(self, name: str, arg: Operand | None, span: Span) -> Expr | None:
        """Returns a declared map applied to a value (T7)."""
        if not self.declared(name) or arg is None:
            return None
        tensor = self.scope.tensors[name]
        assert isinstance(tensor, MapTensor)
        return shapes.mapped(tensor.map, arg, span, self)

    # Names

    def name(self, name: str, span: Span, ctx: Context) -> Expr | None:
        """Returns what a name stands for at the present token."""
        if name in ctx.args:
            return ctx.args[name]
        if name == TIME or name in ctx.clock.vars:
            if not self.may_read_time(f"reads the time `{name}`", span, ctx):
                return None
            return Lag(((ctx.clock.vars.get(name, TIME), 1),), 0)
        return self.read(name, Now(0), span, ctx)

    def read(self, name: str, at: Now, span: Span, ctx: Context) -> Expr | None:
        """Returns the value of a name of the mixer, streams at the time `at`."""
        program = self.scope.program
        if name in program.consts:
            return self.constant(name)
        if name in self.scope.axes:
            return Size(self.scope.axes[name])
        if name == FIRST or name in program.declared or name in program.updates:
            if ctx.constant:
                self.add(reads_name(self.scope, ctx.owner, name, span))
                return None
            value = self._declared_or_defined(name, at, span, ctx)
            return None if value is None else self._checked(name, value, span, ctx)
        if name == "pi":
            return prim("pi")
        self._unknown(name, span, ctx)
        return None

    def _unknown(self, name: str, span: Span, ctx: Context) -> None:
        program = self.scope.program
        if name in program.functions or name in SPELLINGS:
            problem = f"is a function; call it: `{name}(…)`"
            self.add(Arguments(span, function=name, problem=problem))
            return
        if name in DISTRIBUTIONS:
            numbers = ", ".join("01"[: DISTRIBUTIONS[name].arity])
            problem = f"is a draw; call it with its numbers, `{name}({numbers})`"
            self.add(Arguments(span, function=name, problem=problem))
            return
        self.add(unknown_value(self.scope, ctx, name, span))

    def _declared_or_defined(self, name: str, at: Now, span: Span, ctx: Context) -> Expr | None:
        if name == FIRST:
            return first(at.lag)
        kind = self.scope.kind(name)
        if self.is_map(name):
            problem = f"is a linear map; apply it: `{name} x`"
            self.add(Arguments(span, function=name, problem=problem))
            return None
        if kind is ast.DeclKind.ABSTRACT:
            self.add(Arguments(span, function=name, problem=f"is a map; apply it: `{name}(x)`"))
            return None
        if kind is not None:
            return self._tensor(name, kind, at)
        value = self.definition(name)
        if value is None:
            return None
        when = None if value.time is Time.CONST else at
        return Ref(name, value.axes, value.field, value.time, when)

    def _tensor(self, name: str, kind: ast.DeclKind, at: Now) -> Expr | None:
        if not self.declared(name):
            return None
        if kind is ast.DeclKind.STATE:
            state = self.scope.states[name]
            assert state is not None
            return Ref(name, frozenset(state.axes), state.field, Time.STATE, at)
        if kind is ast.DeclKind.INPUT:
            tensor = self.scope.inputs[name]
            assert tensor is not None
            return Ref(name, frozenset(tensor.axes), tensor.field, Time.TOKEN, at)
        held = self.scope.tensors[name]
        assert held is not None and not isinstance(held, MapTensor)
        return Param(name, frozenset(held.axes), held.field)

    def _checked(self, name: str, value: Expr, span: Span, ctx: Context) -> Expr | None:
        """W10: the body of a function reads no stream."""
        if ctx.calls and value.time is not Time.CONST:
            self.add(Capture(span, function=ctx.calls[-1], stream=span.text or name))
            return None
        return value

    def instant(self, node: ast.Condition, ctx: Context) -> Instant | None:
        """Returns a time index of the form variable - lag, None for any other.

        A constant of the mixer may stand in the lag.
        """
        consts = self.scope.program.consts
        named = {p.id for p in ast.walk(node) if isinstance(p, ast.Name)} & consts.keys()
        known = {name: self.constant(name) for name in sorted(named - ctx.args.keys())}
        return ctx.clock.instant(node, {**ctx.args, **known})

    def may_read_time(self, what: str, span: Span, ctx: Context) -> bool:
        """Whether an expression may depend on the token; reports if it may not.

        Args:
            what: how it does, as a verb and its object.
            span: where it does.
            ctx: where the expression stands.
        """
        if ctx.constant:
            self.add(reads_time(self.scope, ctx.owner, what, span))
        return not ctx.constant

    def constant(self, name: str) -> Expr | None:
        """Returns the value of a constant."""
        if name in self._reading:
            path = (*self._reading[self._reading.index(name) :], name)
            self.add(constant_cycle(path, self.scope.program.consts[name].name.span))
            return None
        if name not in self._constants:
            item = self.scope.program.consts[name]
            self._reading.append(name)
            value = self.type(item.expr, Context(name, constant=True))
            self._reading.pop()
            self._constants[name] = value
        return self._constants[name]

    # Functions of the spec

    def expand(self, item: ast.FunDef, node: ast.Call, ctx: Context) -> Expr | None:
        """Returns a function's body with its arguments in place."""
        name = item.name.text
        args = [self.type(arg, ctx) for arg in node.args]
        if node.brackets or len(args) != len(item.params):
            count = len(item.params)
            problem = f"takes {count} argument{'s' if count != 1 else ''}, got {len(args)}"
            if node.brackets:
                problem = "takes no brackets"
            self.add(Arguments(node.span, function=name, problem=problem))
            return None
        if name in ctx.calls:
            path = (*ctx.calls[ctx.calls.index(name) :], name)
            self.add(function_cycle(path, item.name.span))
            return None
        bound = {p.text: value for p, value in zip(item.params, args, strict=True)}
        inner = replace(
            ctx,
            clock=Clock({}, ctx.clock.ahead),
            args=MappingProxyType(bound),
            calls=(*ctx.calls, name),
        )
        return self.type(item.expr, inner)
