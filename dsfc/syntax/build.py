"""Parse tree to syntax tree: the context-free part of meaning, and nothing else.

Here a continuation line gets the keyword of the declaration above it, names are folded to ASCII,
numbers become exact, and the height of expressions is bounded, so that later stages may recurse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from lark import Token, Tree

from dsfc.diagnostics.catalogue import BadPaper, Limit, SyntaxProblem
from dsfc.diagnostics.report import Reporter, nearest
from dsfc.latex_symbol import parsed_symbol
from dsfc.layer_parts import PARTS, Gate, LayerParts, Norm
from dsfc.limits import Limits
from dsfc.papers import FORMS, YEARS, Identifier, Letter, Paper, Register, parsed_authors
from dsfc.source import Source, Span
from dsfc.syntax import ast
from dsfc.syntax.letters import fold

_COMPARISONS = {"≤": ast.CmpOp.LE, "≥": ast.CmpOp.GE} | {str(op): op for op in ast.CmpOp}

Parsed = Tree[Token]


class Builder:
    """Builds the nodes of one source."""

    def __init__(self, source: Source, limits: Limits, reporter: Reporter) -> None:
        """Keeps what every node needs.

        Args:
            source: the text the spans point into.
            limits: bounds on expressions.
            reporter: takes what is wrong.
        """
        self._source = source
        self._limits = limits
        self._reporter = reporter

    def spec(self, tree: Parsed, comments: tuple[ast.Comment, ...]) -> ast.Spec:
        """The whole text."""
        return ast.Spec(
            tuple(self._unit(unit) for unit in _trees(tree)), comments, self._source.span()
        )

    # Units and items

    def _unit(self, tree: Parsed) -> ast.Unit:
        header = [child for child in tree.children if isinstance(child, Token)]
        idents = [self._ident(token) for token in header if token.type == "NAME"]
        provenance = self._provenance(header)
        parts = list(_trees(tree))
        if tree.data == "modifier":
            return ast.ModifierUnit(
                idents[0], idents[1], provenance, self._items(parts), self._span(tree)
            )
        base = self._ident(_token(parts.pop(0).children[0])) if _is(parts[:1], "extends") else None
        return ast.MixerUnit(idents[0], provenance, base, self._items(parts), self._span(tree))

    def _items(self, trees: Iterable[Parsed]) -> tuple[ast.Item, ...]:
        items: list[ast.Item] = []
        for tree in trees:
            if tree.data == "more":
                above = items[-1] if items else None
                kind = above.kind if isinstance(above, ast.Decl) else self._no_declaration(tree)
                items.append(self._decl(tree, kind))
            else:
                items.append(self._item(tree))
        return tuple(items)

    def _no_declaration(self, tree: Parsed) -> ast.DeclKind:
        name = self._names(_tree(tree.children[0]))[0]
        written = name.span.text
        problem = (
            f"`{written} : …` continues a declaration, but there is none above it; "
            f"write `param {written} : …`, `input`, `buffer` or `state`"
        )
        last = tree.children[-1]
        if isinstance(last, Tree) and last.data == "init":
            problem = f"a definition has no type; write `{written} = …`, the value says its axes"
        self._reporter.add(SyntaxProblem(name.span, problem=problem))
        return ast.DeclKind.PARAM

    def _item(self, tree: Parsed) -> ast.Item:
        kids, span = tree.children, self._span(tree)
        match str(tree.data):
            case "dims":
                return ast.Dims(tuple(self._dim(dim) for dim in _trees(tree)), span)
            case "decl":
                return self._decl(tree, ast.DeclKind(str(kids[0])))
            case "const":
                return ast.Const(self._ident(_token(kids[0])), self._last_expr(tree), span)
            case "def":
                name = self._ident(_token(kids[0]))
                return ast.Def(name, self._last_expr(tree), self._provenance(kids), span)
            case "fundef":
                name, params = self._ident(_token(kids[0])), self._names(_tree(kids[1]))
                return ast.FunDef(name, params, self._last_expr(tree), self._provenance(kids), span)
            case "flow":
                return self._flow(tree)
            case "use":
                return ast.Use(self._ident(_token(kids[0])), self._names(_tree(kids[1])), span)
            case "claim":
                relation, *when = (self._expr(kid) for kid in _trees(tree))
                return ast.Claim(relation, tuple(when), span)
            case "paper":
                return self._citation(tree)
            case "layer":
                return self._layer(tree)
        raise AssertionError(tree.data)

    def _dim(self, tree: Parsed) -> ast.Dim:
        (name,) = _tokens(tree, "NAME")
        sizes = [self._value(size) for size in _trees(tree)]
        heads = _is(tree.children[:1], "HEADS")
        return ast.Dim(self._ident(name), heads, sizes[0] if sizes else None, self._span(tree))

    def _decl(self, tree: Parsed, kind: ast.DeclKind) -> ast.Decl:
        parts = {str(part.data): part for part in _trees(tree)}
        flags = tuple(ast.Flag(str(token)) for token in _tokens(tree, "FLAG"))
        written = self._type(parts["type"]) if "type" in parts else None
        init = self._init(parts["init"]) if "init" in parts else None
        return ast.Decl(kind, self._names(parts["names"]), written, flags, init, self._span(tree))

    def _type(self, tree: Parsed) -> ast.Type:
        shapes = [self._idents(_tokens(shape, "NAME")) for shape in _trees(tree)]
        span = self._span(tree)
        if len(shapes) == 1:
            return ast.TensorType(shapes[0], span)
        each, source, target = shapes if len(shapes) == 3 else [(), *shapes]
        return ast.MapType(each, source, target, span)

    def _init(self, tree: Parsed) -> ast.Init:
        kind = ast.InitKind(str(tree.children[0]))
        return ast.Init(kind, self._last_expr(tree), self._span(tree))

    def _flow(self, tree: Parsed) -> ast.Flow:
        state, rule = (self._ident(token) for token in _tokens(tree, "NAME"))
        drift, step = (self._value(part) for part in _trees(tree))
        return ast.Flow(state, drift, rule, step, self._provenance(tree.children), self._span(tree))

    def _citation(self, tree: Parsed) -> ast.Citation:
        """A paper; what is wrong with it is reported, and something near stands in its place."""
        names, title, *rest = _tokens(tree, "STRING")
        (year,), registers = _tokens(tree, "NUMBER"), list(_tokens(tree, "NAME"))
        authors = parsed_authors(names[1:-1])
        if authors is None:
            problem = "write the family names of the authors with commas between them"
            self._bad_paper(names, problem)
        if not title[1:-1].strip():
            self._bad_paper(title, "the title is missing")
        number = Fraction(str(year))
        if number not in YEARS:
            self._bad_paper(year, f"`{year}` is not the year of a paper")
        identifier = self._identifier(registers[0], rest.pop(0)) if registers else None
        place = rest[0][1:-1] if rest else None
        known, others = authors or (("",), False)
        letters: list[Letter] = []
        named: list[ast.Ident] = []
        for part in _trees(tree):
            word, *pairs = part.children
            registers.append(self._letters_word(_token(word)))
            for pair in map(_tree, pairs):
                name, symbol = map(_token, pair.children)
                letters.append(self._letter(name, symbol, [letter.name for letter in letters]))
                named.append(self._ident(name))
        paper = Paper(known, others, int(number), title[1:-1], identifier, place, tuple(letters))
        words = tuple(map(self._token_span, registers))
        return ast.Citation(paper, words, tuple(named), self._span(tree))

    def _letters_word(self, word: Token) -> Token:
        if word != "letters":
            problem = f'`{word}` is no part of a paper; its letters are `letters name "symbol"`'
            self._bad_paper(word, problem, nearest(str(word), ("letters",)))
        return word

    def _letter(self, name: Token, symbol: Token, before: Sequence[str]) -> Letter:
        letter = Letter(fold(name), symbol[1:-1])
        if letter.name in before:
            self._bad_paper(name, f"`{name}` has a letter of this paper already")
        if parsed_symbol(letter.latex) is None:
            problem = (
                f"`{letter.latex}` is not one symbol of LaTeX; a letter is one such as "
                r'`"\bar{A}"` or `"W_Q"`, without the token'
            )
            self._bad_paper(symbol, problem)
        return letter

    def _identifier(self, register: Token, value: Token) -> Identifier | None:
        if str(register) not in tuple(Register):
            known = ", ".join(f"`{r}`" for r in Register)
            problem = f"`{register}` keeps no papers; known are {known}"
            self._bad_paper(register, problem, nearest(str(register), tuple(Register)))
            return None
        keeper, text = Register(str(register)), value[1:-1]
        form, example, _ = FORMS[keeper]
        if not form.fullmatch(text):
            problem = f'`{text}` is no identifier of {keeper}; one looks like `"{example}"`'
            self._bad_paper(value, problem)
        return Identifier(keeper, text)

    def _layer(self, tree: Parsed) -> ast.Layer:
        """Norm and gate of a layer; what is neither is reported."""
        said: dict[str, str] = {}
        words: list[Token] = []
        for part in _trees(tree):
            name, value = _tokens(part, "NAME")
            words += [name, value]
            known = PARTS.get(str(name), ())
            if str(name) not in PARTS:
                problem = f"a layer has no `{name}`; its parts are {_quoted(PARTS)}"
                self._reporter.add(SyntaxProblem(self._token_span(name), problem=problem))
            elif str(value) not in known:
                problem = f"a {name} of a layer is {_quoted(known)}, not `{value}`"
                self._reporter.add(SyntaxProblem(self._token_span(value), problem=problem))
            elif str(name) in said:
                problem = f"a layer has one {name}, and this is another"
                self._reporter.add(SyntaxProblem(self._token_span(name), problem=problem))
            else:
                said[str(name)] = str(value)
        norm, gate = said.get("norm"), said.get("gate")
        parts = LayerParts(
            None if norm is None else Norm(norm), None if gate is None else Gate(gate)
        )
        return ast.Layer(parts, tuple(map(self._token_span, words)), self._span(tree))

    def _bad_paper(self, token: Token, problem: str, near: str | None = None) -> None:
        span = self._token_span(token)
        self._reporter.add(BadPaper(span, problem=problem, nearest=near))

    # Small parts

    def _names(self, tree: Parsed) -> tuple[ast.Ident, ...]:
        return self._idents(_tokens(tree, "NAME"))

    def _idents(self, tokens: Iterable[Token]) -> tuple[ast.Ident, ...]:
        return tuple(self._ident(token) for token in tokens)

    def _ident(self, token: Token) -> ast.Ident:
        return ast.Ident(fold(token), self._token_span(token))

    def _provenance(self, children: Sequence[Token | Parsed]) -> ast.Provenance | None:
        for child in children:
            if isinstance(child, Token) and child.type == "STRING":
                return ast.Provenance(child[1:-1], self._token_span(child))
        return None

    def _token_span(self, token: Token) -> Span:
        start = token.start_pos or 0
        return Span(self._source, start, start + len(token))

    def _span(self, tree: Parsed) -> Span:
        # Container positions take in the parentheses around a rule, which leave no node.
        meta = vars(tree.meta)
        return Span(self._source, meta["container_start_pos"], meta["container_end_pos"])

    # Expressions

    def _last_expr(self, tree: Parsed) -> ast.Expr:
        return self._value(list(_trees(tree))[-1])

    def _value(self, tree: Parsed) -> ast.Expr:
        node = self._expr(tree)
        assert not isinstance(
            node, ast.Relation
        )  # the grammar has relations in brackets and claims only
        return node

    def _expr(self, tree: Parsed) -> ast.Condition:
        """Bottom-up over an explicit stack: the height is not yet known to be small."""
        done: dict[int, tuple[ast.Condition, int]] = {}
        stack: list[tuple[Parsed, bool]] = [(tree, False)]
        while stack:
            node, ready = stack.pop()
            kids = _expression_children(node)
            if not ready:
                stack.append((node, True))
                stack.extend((kid, False) for kid in kids)
                continue
            below = [done.pop(id(kid)) for kid in kids]
            height = 1 + max((depth for _, depth in below), default=0)
            self._check_height(node, height)
            done[id(node)] = self._node(node, [value for value, _ in below]), height
        return done[id(tree)][0]

    def _check_height(self, tree: Parsed, height: int) -> None:
        if height > self._limits.depth:
            span = self._span(tree)
            self._reporter.add(
                Limit(
                    span,
                    what="height of the expression",
                    size=str(height),
                    bound=str(self._limits.depth),
                )
            )
            self._reporter.raise_errors()

    def _node(self, tree: Parsed, below: list[ast.Condition]) -> ast.Condition:
        span, kids = self._span(tree), tree.children
        if tree.data == "condition":
            comparisons = tuple(_COMPARISONS[str(token)] for token in _tokens(tree))
            return ast.Relation(_values(below), comparisons, span=span)
        if tree.data == "every":
            holds, left, right = below
            (comparison,) = (_COMPARISONS[str(token)] for token in _tokens(tree))
            bound = _values((left, right))
            over = ast.Relation(bound, (comparison,), span=bound[0].span.to(bound[1].span))
            operands = holds.operands if isinstance(holds, ast.Relation) else _values((holds,))
            operators = holds.operators if isinstance(holds, ast.Relation) else ()
            return ast.Relation(operands, operators, over, span)
        match str(tree.data):
            case "num":
                return ast.Num(Fraction(str(kids[0])), span)
            case "name":
                return ast.Name(fold(_token(kids[0])), span)
            case "index":
                return ast.Index(self._ident(_token(kids[0])), tuple(below), span)
            case "call":
                name = self._ident(_token(kids[0]))
                count = len(list(_trees(_tree(kids[1])))) if _is(kids[1:2], "brackets") else 0
                return ast.Call(name, tuple(below[:count]), _values(below[count:]), span)
            case "apply":
                (operand,) = _values(below)
                return ast.Apply(self._ident(_token(kids[0])), operand, span)
            case "pow":
                base, exponent = _values(below)
                return ast.Pow(base, exponent, span)
            case "neg":
                (operand,) = _values(below)
                return ast.Neg(operand, span)
            case "dotted":
                return ast.Dot(_values(below), span)
            case "term":
                times = tuple(ast.MulOp(str(token)) for token in _tokens(tree))
                return ast.Mul(_values(below), times, span)
            case "tensor":
                return ast.Outer(_values(below), span)
            case "expr":
                signs = tuple(ast.AddOp(str(token)) for token in _tokens(tree))
                return ast.Add(_values(below), signs, span)
        raise AssertionError(tree.data)


def _expression_children(tree: Parsed) -> list[Parsed]:
    """The operands of an expression, those in brackets spliced in."""
    kids: list[Parsed] = []
    for child in _trees(tree):
        kids.extend(_trees(child) if child.data == "brackets" else (child,))
    return kids


def _values(nodes: Sequence[ast.Condition]) -> tuple[ast.Expr, ...]:
    values = tuple(node for node in nodes if not isinstance(node, ast.Relation))
    assert len(values) == len(nodes)  # the grammar has relations in brackets and claims only
    return values


def _is(children: Sequence[Token | Parsed], kind: str) -> bool:
    """Whether the one child given is of this rule or terminal."""
    return any(
        (child.type if isinstance(child, Token) else child.data) == kind for child in children
    )


def _trees(tree: Parsed) -> Iterable[Parsed]:
    return (child for child in tree.children if isinstance(child, Tree))


def _tokens(tree: Parsed, kind: str | None = None) -> Iterable[Token]:
    tokens = (child for child in tree.children if isinstance(child, Token))
    return (token for token in tokens if kind is None or token.type == kind)


def _tree(child: Token | Parsed) -> Parsed:
    assert isinstance(child, Tree)
    return child


def _token(child: Token | Parsed) -> Token:
    assert isinstance(child, Token)
    return child


def _quoted(words: Iterable[str]) -> str:
    """Words of the language as a message names them."""
    return " or ".join(f"`{word}`" for word in words)
