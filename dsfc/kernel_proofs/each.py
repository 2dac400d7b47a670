"""A kernel that keeps the state after each token, as one that keeps the last of them.

The loop over the tokens stores the state that it carries on. A uniform kernel of one token an
iteration does the same to token i whatever the length is, so that what it stores there is the last
state of a sequence of i + 1 tokens. What is proved of last states for all lengths is then proved of
the states after each token.
"""

from __future__ import annotations

from dataclasses import replace

from dsfc.kernel_ir.ir import Access, Argument, Kernel, Loop, Statement, Store, Symbol
from dsfc.kernel_proofs.exact import Undecided

EACH = "S_each"
"""The states after each token, `[L, B, ...]`."""


_CARRIED = "carried_to_the_end"
"""The name of the state behind the loop."""


def with_last_state(kernel: Kernel) -> Kernel:
    """Returns the kernel that stores, behind its loop, the last of the states that it keeps.

    Args:
        kernel: one that writes `S_each`.

    Raises:
        Undecided: what it keeps there is not what its loop carries from token to token.
    """
    arguments = {a.name: a for a in kernel.arguments}
    each, state = arguments[EACH], arguments.get("S")
    if state is None or "S_last" in arguments or each.access is not Access.WRITE:
        raise Undecided("it keeps states after each token, and another one or none before them")
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if len(loops) != 1 or len(loops[0].carries) != 1 or loops[0].reverse:
        raise Undecided("it keeps states after each token, and no loop carries one alone")
    (loop,) = loops
    stores = [s for s in _stores(kernel.body) if s.argument == EACH]
    inside = [s for s in loop.body if isinstance(s, Store) and s.argument == EACH]
    (carry,) = loop.carries
    if (
        each.shape != (loop.count, *state.shape)
        or not isinstance(loop.count, Symbol)
        or len(stores) != 1
        or stores != inside
        or stores[0].value != carry.next
        or stores[0].at[0] != Symbol(loop.counter)
    ):
        raise Undecided("it does not keep, at each token, the state that its loop carries on")
    (store,) = stores
    carried = replace(carry, last=_CARRIED)  # its name may be that of the argument
    rest = tuple(x for x in loop.body if x is not store)
    body = tuple(replace(s, carries=(carried,), body=rest) if s is loop else s for s in kernel.body)
    last = Argument("S_last", state.shape, Access.WRITE, each.storage, each.promise)
    return replace(
        kernel,
        arguments=tuple(last if a.name == EACH else a for a in kernel.arguments),
        body=(*body, Store("S_last", store.at[1:], _CARRIED)),
    )


def _stores(body: tuple[Statement, ...]) -> list[Store]:
    """All stores, those inside of loops too."""
    inner = [x for s in body if isinstance(s, Loop) for x in _stores(s.body)]
    return [*(s for s in body if isinstance(s, Store)), *inner]
