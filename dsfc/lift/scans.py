"""`torch.ops.higher_order.scan`: its step is run for each token of the trace, as a loop would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dsfc.lift.failure import CannotLift
from dsfc.lift.tokens import select, stack

if TYPE_CHECKING:
    from dsfc.lift.recognise import Recogniser


def scan(
    r: Recogniser, step: torch.fx.GraphModule, init: list[Any], xs: list[Any], more: list[Any]
) -> list[Any]:
    """Returns the last carry and the outputs of all tokens, along the first dimension."""
    carry, rows = list(init), []
    for t in range(r.trace.length):
        here = [select(r, r.whole(x), 0, t) for x in xs]
        built = r.inline(step.graph, [*carry, *here, *more])
        carry = built[: len(init)]
        rows.append(built[len(init) :])
    if not xs:
        raise CannotLift("a scan over no tensor")
    return [*carry, *(stack(r, list(column), 0) for column in zip(*rows, strict=True))]


OPERATIONS: dict[str, Any] = {"scan": scan}
