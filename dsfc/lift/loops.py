"""Finds the step of a loop over tokens in the operations of all its rounds.

A trace holds a loop unrolled. What a round computes is what the round before computed, with each
token moved by one: `_Earlier` pairs the values of neighbouring rounds. Where a value of the first
round is paired with something that is no value of a token, this is what a state starts from, and
the values paired with that one after another are the state at all tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import (
    Along,
    At,
    Before,
    Delay,
    First,
    Input,
    Masked,
    Node,
    Now,
    Num,
    Op,
    Param,
    Past,
    Reduce,
    State,
    Token,
    axes,
    children,
    own_axes,
    rebuilt,
    walk,
)


def stream(values: Sequence[Node]) -> Node:
    """Returns the stream that has the values, one for each token.

    Raises:
        CannotLift: no step computes them all.
    """
    if all(isinstance(v, Token) and v.token == t for t, v in enumerate(values)):
        first = values[0]
        assert isinstance(first, Token)
        if all(isinstance(v, Token) and v.arg is first.arg for v in values):
            return first.arg
    return _Loop(values).stream()


def _tokens(node: Node, known: dict[int, int]) -> int:
    """The last token that a value reads; -1 for none."""
    if id(node) not in known:
        known[id(node)] = -1
        below = [_tokens(child, known) for child in children(node)]
        own = node.token if isinstance(node, Token) else -1
        known[id(node)] = own if isinstance(node, Token) else max(below, default=-1)
    return known[id(node)]


class _Loop:
    """The rounds of one loop.

    Attributes:
        values: the output of each round.
        earlier: the value of the round before, by the identity of a value.
        starts: what a state starts from, by the identity of its value in the first round.
        states: the state and the token that a value is, by its identity.
        newest: the last value of a state that the outputs read, and its token.
    """

    def __init__(self, values: Sequence[Node]) -> None:
        self.values = values
        self.last = len(values) - 1
        self.known: dict[int, int] = {}
        self.earlier: dict[int, Node | None] = {}
        self.starts: dict[int, tuple[Node, Node]] = {}
        self.pairs: dict[tuple[int, int], bool] = {}
        self.problem: tuple[Node, str] | None = None
        self.states: dict[int, tuple[State, int]] = {}
        self.newest: dict[int, tuple[Node, int]] = {}
        self.open: set[int] = set()
        self.done: dict[tuple[int, int], Node] = {}

    def stream(self) -> Node:
        """Returns the stream of the outputs."""
        for t in range(self.last, 0, -1):
            if not self._pair(self.values[t], self.values[t - 1]):
                self._refuse(self.values[t])
        self._find_states()
        return self._convert(self.values[self.last], self.last)

    def _refuse(self, value: Node) -> None:
        node, what = self.problem or (value, "its value at a token is computed in another way")
        hint = "each round has to do the same with the tokens at the same distance"
        raise CannotLift(f"the rounds of a loop over tokens differ: {what}", node.where, hint)

    def _pair(self, node: Node, before: Node) -> bool:
        """Whether `before` is what the round before computed in the place of `node`."""
        key = id(node), id(before)
        if key not in self.pairs:
            self.pairs[key] = True
            self.pairs[key] = self._paired(node, before)
        return self.pairs[key]

    def _paired(self, node: Node, before: Node) -> bool:
        own, other = _tokens(node, self.known), _tokens(before, self.known)
        if node is before:
            return own < 0 or self._fail(node, "it reads one and the same token")
        if isinstance(node, Token) and isinstance(before, Token) and node.arg is before.arg:
            if node.token != before.token + 1:
                return self._fail(node, f"it reads token {node.token} after token {before.token}")
            self.earlier[id(node)] = before
            return True
        if _alike(node, before) and (children(node) or own < 0):
            if self._children_paired(node, before):
                if own >= 0:
                    self.earlier[id(node)] = before
                return True
            if other >= 0 or own < 0:
                return False
        if own < 0:
            return False
        first = other < 0 or other == 0
        if not first or (own - other != 1 and other >= 0):
            return self._fail(node, "it does something else")
        self.starts[id(node)] = node, before
        return True

    def _children_paired(self, node: Node, before: Node) -> bool:
        """Whether all that two values are computed from is paired; nothing is kept if not."""
        kept = dict(self.earlier), dict(self.starts), dict(self.pairs), self.problem
        below = zip(children(node), children(before), strict=True)
        if all([self._pair(a, b) for a, b in below]):
            return True
        if _tokens(before, self.known) < 0:
            self.earlier, self.starts, self.pairs, self.problem = kept
        return False

    def _fail(self, node: Node, what: str) -> bool:
        if self.problem is None:
            self.problem = node, what
        return False

    def _find_states(self) -> None:
        """Follows each state from its first value through all rounds."""
        later: dict[int, list[Node]] = {}
        nodes = {id(n): n for v in self.values for n in walk(v)}
        for key, before in self.earlier.items():
            later.setdefault(id(before), []).append(nodes[key])
        for node, before in self.starts.values():
            token = _tokens(node, self.known)
            state = State(axes(node, {}), start=self._start(before), where=node.where)
            if token == 1:
                self.states[id(before)] = state, 0
            members = [node]
            while members:
                self.newest[id(state)] = members[0], token
                for member in members:
                    self.states[id(member)] = state, token
                members = [n for m in members for n in later.get(id(m), ())]
                token += 1

    def _start(self, node: Node) -> Node | None:
        """What a state starts from; None for zero, and where the first round is the first value."""
        if _tokens(node, self.known) >= 0 or (isinstance(node, Num) and node.value == 0):
            return None
        if any(isinstance(n, Input) for n in walk(node)):
            hint = "let it be None and start from zeros"
            raise CannotLift("a loop starts from an argument", node.where, hint)
        return node

    def _convert(self, node: Node, base: int) -> Node:
        """A value of one round as a value of any token; `base` is the token of that round."""
        key = id(node), base
        if key not in self.done:
            self.done[key] = self._converted(node, base)
        return self.done[key]

    def _converted(self, node: Node, base: int) -> Node:
        if isinstance(node, Token):
            lag = base - node.token
            return Delay(node.arg, lag) if lag else node.arg
        if id(node) in self.states:
            state, token = self.states[id(node)]
            self._update(state)
            if token == base:
                return Now(state, where=node.where)
            if token == base - 1:
                return Before(state, where=node.where)
            return Delay(Now(state), base - token)
        if _tokens(node, self.known) < 0:
            return node
        return self._step(node, base)

    def _update(self, state: State) -> None:
        """Says how a state is updated, by its newest value."""
        if state.update is None and id(state) not in self.open:
            self.open.add(id(state))
            node, token = self.newest[id(state)]
            state.where = node.where
            state.update = self._step(node, token)

    def _step(self, node: Node, base: int) -> Node:
        built = rebuilt(node, lambda child: self._convert(child, base))
        built.where = built.where or node.where
        return built


def _alike(a: Node, b: Node) -> bool:
    """Whether two nodes are the same but for their children."""
    if type(a) is not type(b) or own_axes(a) != own_axes(b):
        return False
    match a, b:
        case Num(value=x), Num(value=y):
            return x == y
        case Param(), Param():
            return a.key == b.key
        case (Op(name=x), Op(name=y)) | (Along(name=x), Along(name=y)):
            return x == y and len(children(a)) == len(children(b))
        case Reduce(kind=x), Reduce(kind=y):
            return x == y
        case Token(), Token():
            return False
        case (Now(state=x), Now(state=y)) | (Before(state=x), Before(state=y)):
            return x is y
        case Delay(lag=x), Delay(lag=y):
            return x == y
        case At(variable=x), At(variable=y):
            return x == y
        case Masked(relation=x), Masked(relation=y):
            return x == y
        case Past(relation=x), Past(relation=y):
            return x == y
        case Input(name=x), Input(name=y):
            return x == y
        case First(), First():
            return True
    return True
