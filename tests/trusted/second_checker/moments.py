"""One mixer at one token, by absolute numbers of tokens: of its system, and of its definitions.

At a token of the system, what states were before it is looked up: an atom, or a value that was
computed. Definitions are unrolled from the first token on, sums over the past as sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from second_checker.arithmetic import Beyond, Value
from second_checker.document import At
from second_checker.expressions import Walk


class Unrolled(Walk):
    """The definitions of a mixer, from the first token on."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._values: dict[tuple[str, int, tuple[int, ...]], Value] = {}

    def outputs(self) -> list[Value]:
        out = self.side.system["outputs"][0]
        axes = self.document.names(out["axes"])
        return [self.at(self.side.definitions[out["name"]], at, self.token)
                for at in self.document.places(axes)]  # fmt: skip

    def at(self, d: Any, at: At, token: int) -> Value:
        own = self._own(d, at)
        key = (d["name"] + "+" * d["update"], token, tuple(own.values()))
        if key not in self._values:
            before, self.bound = self.bound, {}
            self._values[key] = self.value(d["value"], own, token)
            self.bound = before
        return self._values[key]

    def constant(self, name: str, at: At, token: int) -> Value:
        return self.at(self.side.definitions[name], at, 0)

    def defined(self, name: str, at: At, token: int) -> Value:
        d = self.side.updates.get(name) or self.side.definitions[name]
        if d["backward"] or d["maximum"]:
            raise Beyond("a state runs backwards, or is a maximum")
        return self.at(d, at, token) if token >= 0 else self.ring.zero

    def over_time(self, e: Any, at: At, token: int) -> Value:
        clock = {"i": token, **self.bound}
        match e["kind"]:
            case "Lag":
                return self.ring.number(sum(c * clock[v] for v, c in e["terms"]) + e["constant"])
            case "Past":
                outer = (token if e["outer"] is None else self.bound[e["outer"]]) - e["lag"]
                last = {"UP_TO": outer, "BEFORE": outer - 1}.get(e["relation"])
                if last is None:
                    raise Beyond("a sum runs over later tokens")
                tokens = range(last + 1)
                return self.ring.total(
                    self._within(e["var"], t, e["body"], at, token) for t in tokens
                )
            case "Run":
                out = self.ring.one
                low, high = (self.instant(e[end], token) for end in ("low", "high"))
                for t in range(low + 1, high + 1):
                    out = out * self._within(e["var"], t, e["arg"], at, token)
                return out
        return super().over_time(e, at, token)

    def _within(self, var: str, there: int, it: Any, at: At, token: int) -> Value:
        before, self.bound = self.bound, {**self.bound, var: there}
        try:
            return self.value(it, at, token)
        finally:
            self.bound = before


class Moment(Walk):
    """The system of a mixer at one token, of states before it.

    Attributes:
        before: the name of an entry of a state, and whether it is complex → its value.
    """

    def __init__(self, *args: Any, before: Callable[[str, bool], Value]) -> None:
        super().__init__(*args)
        self.before = before
        self._new: dict[str, dict[tuple[int, ...], Value]] = {}
        self._registers: dict[str, tuple[Any, At, int]] = {}
        self._readers: dict[str, bool] = {}
        if any(stage["direction"] != "FORWARD" for stage in self.side.system["stages"]):
            raise Beyond("a state runs backwards")

    def defined(self, name: str, at: At, token: int) -> Value:
        if name not in self.side.streams:
            raise Beyond(f"the state {name} is read inside a definition")
        stream = self.side.streams[name]
        if stream["constant"]:
            raise Beyond(f"{name} has no time and is read at one")
        own = self._own(stream, at)
        if not self._reads_states(name):
            return self.value(stream["value"], own, token) if token >= 0 else self.ring.zero
        return self._delayed(stream, own, self.token - token)

    def _reads_states(self, name: str) -> bool:
        if name not in self._readers:
            value = self.side.streams[name]["value"]
            if list(value) != ["node"]:
                self._readers[name] = True
            else:
                read, waiting = set(), [value]
                while waiting:
                    e = self.document.of(waiting.pop())[1]
                    waiting += self.document.parts(e)
                    read |= {e["name"]} if e["kind"] == "Ref" else set()
                self._readers[name] = any(
                    self._reads_states(n) for n in read if n in self.side.streams and n != name
                )
        return self._readers[name]

    def _delayed(self, stream: Any, at: At, lag: int) -> Value:
        if lag == 0:
            if list(stream["value"]) == ["node"]:
                return self.value(stream["value"], at, self.token)
            return self.read(stream["value"], at)
        where = ",".join(map(str, at.values()))
        name = f"${self.side.label}.{stream['name']}.{lag}[{where}]"
        self._registers[name] = stream, at, lag - 1
        return self.before(name, stream["field"] == "COMPLEX")

    # --- states -----------------------------------------------------------------------------------

    def _cell(self, block: Any, at: At) -> str:
        where = ",".join(str(at[a]) for a in self.document.names(block["axes"]))
        return f"${self.side.label}.{block['state']}[{where}]"

    def _old(self, block: Any) -> dict[tuple[int, ...], Value]:
        return {tuple(at.values()): self.before(self._cell(block, at), block["field"] == "COMPLEX")
                for at in self.document.places(self.document.names(block["axes"]))}  # fmt: skip

    def _reader(self, state: str, values: Mapping[tuple[int, ...], Value]) -> Callable[[At], Value]:
        axes = self.document.names(self.side.blocks[state]["axes"])
        return lambda at: values[tuple(at[a] for a in axes)]

    def _state(self, name: str, lag: int) -> Callable[[At], Value]:
        if lag == 1:
            return self._reader(name, self._old(self.side.blocks[name]))
        if lag != 0:
            raise Beyond(f"{name} is read with a lag of {lag}")
        if name not in self._new:
            (stage,) = (s for s in self.side.system["stages"]
                        if any(b["state"] == name for b in s["blocks"]))  # fmt: skip
            current = {b["state"]: self._old(b) for b in stage["blocks"]}
            for position in range(max(len(b["chain"]) for b in stage["blocks"])):
                current = {
                    b["state"]: self._factor(b, b["chain"][position], current)
                    if position < len(b["chain"]) else current[b["state"]]
                    for b in stage["blocks"]
                }  # fmt: skip
            self._new |= current
        return self._reader(name, self._new[name])

    def _factor(self, block: Any, factor: Any, current: Mapping[str, Any]) -> dict[Any, Value]:
        out = {}
        for at in self.document.places(self.document.names(block["axes"])):
            parts = [self._term(t, self._reader(t["source"], current[t["source"]]), at)
                     for t in factor["terms"]]  # fmt: skip
            parts += [self.value(d["key"], at, self.token) * self.value(d["stream"], at, self.token)
                      for d in factor["drives"]]  # fmt: skip
            out[tuple(at.values())] = self.ring.total(parts)
        return out

    def _term(self, t: Any, read: Callable[[At], Value], at: At) -> Value:
        def inner(there: At) -> Value:
            parts = []
            for over in self.document.places(self.document.sorted(t["over"])):
                here = {**there, **over}
                state = self.applied(t["matrix"], read, here) if t["matrix"] else read(here)
                parts.append(self.value(t["right"], here, self.token) * state)
            return self.value(t["left"], there, self.token) * self.ring.total(parts)

        return self.applied(t["after"], inner, at) if t["after"] else inner(at)

    def step(self) -> dict[str, Value]:
        """Entry of a state → its value after the token; the conjugates of complex ones too."""
        out: dict[str, Value] = {}
        for block in self.side.blocks.values():
            read = self._state(block["state"], 0)
            for at in self.document.places(self.document.names(block["axes"])):
                self._keep(out, self._cell(block, at), read(at), block["field"] == "COMPLEX")
        while left := [name for name in self._registers if name not in out]:
            for name in left:
                stream, at, lag = self._registers[name]
                self._keep(out, name, self._delayed(stream, at, lag),
                           stream["field"] == "COMPLEX")  # fmt: skip
        return out

    def _keep(self, out: dict[str, Value], name: str, value: Value, is_complex: bool) -> None:
        out[name] = value
        if is_complex:
            out[f"~{name}"] = self.functions.bar(value)
        elif value - self.functions.bar(value):
            raise Beyond(f"{name} is real and takes complex values")

    # --- read-outs --------------------------------------------------------------------------------

    def outputs(self) -> list[Value]:
        out = self.side.system["outputs"][0]
        axes = self.document.names(out["axes"])
        return [self.read(out["value"], at) for at in self.document.places(axes)]

    def read(self, r: Any, at: At) -> Value:
        """One entry of a read-out."""
        d = self.document
        match r["type"]:
            case "Read":
                parts = [self._term(t, self._state(t["source"], t["lag"]), at) for t in r["terms"]]
                parts += [] if r["direct"] is None else [self.value(r["direct"], at, self.token)]
                return self.ring.total(parts)
            case "Direct":
                return self.value(r["value"], at, self.token)
            case "Gate":
                return self.value(r["factor"], at, self.token) * self.read(r["arg"], at)
            case "Product":
                out = self.ring.one
                for a in r["args"]:
                    out = out * self.read(a, at)
                return out
            case "Sum":
                return self.ring.total(self.read(a, at) for a in r["args"])
            case "Ratio":
                return self.read(r["num"], at) / self._guarded(r["guard"], r["den"], at)
            case "Cast":
                part = {"RE": "re", "IM": "im"}[r["part"]]
                return self.functions.primitive(part, (self.read(r["arg"], at),), True)
            case "MapOut":
                return self.applied(r["map"], lambda there: self.read(r["arg"], there), at)
            case "SumOver":
                axis = d.axis(r["axis"])
                return self.ring.total(self.read(r["arg"], {**at, axis: p})
                                       for p in range(d.sizes[axis]))  # fmt: skip
            case "Post" if r["axis"] is None:
                args = tuple(self.read(a, at) for a in r["args"])
                real = r["name"] in ("abs", "re", "im") or (
                    r["name"] not in ("cis", "cplx") and not any(map(self._complex, r["args"]))
                )
                return self.functions.primitive(r["name"], args, real)  # fmt: skip
            case "Post":
                axis = d.axis(r["axis"])
                vector = tuple(self.read(r["args"][0], {**at, axis: p})
                               for p in range(d.sizes[axis]))  # fmt: skip
                return self.functions.along(r["name"], vector, at[axis], axis)
        raise Beyond(f"{r['type']} has no rule here")

    def _guarded(self, guard: Any, den: Any, at: At) -> Value:
        below = self.read(den, at)
        if guard["kind"] == "NONE" or guard["constant"] is None:
            return below
        constant = self.value(guard["constant"], at, self.token)
        if guard["kind"] == "ADD":
            return below + constant
        size = self.functions.primitive("abs", (below,), True)
        return self.functions.primitive("max", (size, constant), True)

    def _complex(self, r: Any) -> bool:
        """Whether a read-out is declared complex."""
        if r["type"] in ("Cast",) or (r["type"] == "Post" and r["name"] in ("abs", "re", "im")):
            return False
        if r["type"] == "Post" and r["name"] in ("cis", "cplx"):
            return True
        waiting, found = [r], False
        while waiting and not found:
            v = waiting.pop()
            if isinstance(v, list):
                waiting += v
            elif isinstance(v, dict) and list(v) == ["node"]:
                found = self.document.is_complex(v)
            elif isinstance(v, dict) and v.get("type") == "Term":
                found = self.side.blocks[v["source"]]["field"] == "COMPLEX"
                waiting += [v["left"], v["right"], v["matrix"], v["after"]]
            elif isinstance(v, dict) and v.get("type") == "LinearMap":
                found = v["field"] == "COMPLEX"
            elif isinstance(v, dict) and v is not r and "type" in v and "arg" in v:
                found = self._complex(v)
            elif isinstance(v, dict):
                waiting += list(v.values())
        return found
