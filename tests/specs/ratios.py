"""Ratios with exponential weights: specs, inputs of any size, and the loops that judge them.

The judges are loops over tokens in float64 with a running maximum of their own, written from the
papers (xLSTM, appendix A; RWKV-4, appendix D; LLN, with a maximum per key). The specs are the
ratios of the shipped mixers over given queries, keys and gates: those are exact in any dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

LENGTH = 37
SCALES = (1.0, 30.0, 100.0, 1e3, 1e4)
SIZES = {"n": 5, "p": 3, "d": 4}

SPECS = {
    "mlstm": """
  dims heads h = 1, n, p
  input q, k : h × n
        v : h × p
        a, b : h
  state C : h × n × p
        z : h × n
  C = sigmoid(b) * C[i-1] + (exp(a) * k) ⊗ v
  z = sigmoid(b) * z[i-1] + exp(a) * k
  y = (q · C) / max(abs(q · z), 1)
""",
    "rwkv4": """
  dims d
  input k, v : d
  param w : d positive = 1
        bonus : d = 0
  num = sum[j < i](exp(-(i - 1 - j) * w + k[j]) * v[j]) + exp(bonus + k) * v
  den = sum[j < i](exp(-(i - 1 - j) * w + k[j])) + exp(bonus + k)
  y = num / den
""",
    "lln": """
  dims n, p
  input q, k : n
        v : p
  score(a, b) = exp(a) · exp(b)
  y = sum[j ≤ i](score(q, k[j]) * v[j]) / sum[j ≤ i](score(q, k[j]))
""",
}
LARGE = {"mlstm": "ab", "rwkv4": "k", "lln": "qk"}
"""Inputs that are scaled: gate logits, keys, queries and keys."""


def mlstm(q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    forget = torch.nn.functional.logsigmoid(b)
    top = torch.full_like(a[:, 0], -1e30)
    state, total = 0 * k[:, 0, :, None] * v[:, 0, None], 0 * k[:, 0]
    rows = []
    for i in range(q.shape[1]):
        reached = torch.maximum(top + forget[:, i], a[:, i]).detach()
        keep = torch.exp(forget[:, i] + (top - reached))[:, None]
        take = torch.exp(a[:, i] - reached)[:, None] * k[:, i]
        state = keep[..., None] * state + take[..., None] * v[:, i, None]
        total, top = keep * total + take, reached
        over = top.clamp(min=0)
        read = torch.exp(top - over)[:, None] * q[:, i]
        below = torch.maximum((read * total).sum(-1).abs(), torch.exp(-over))
        rows.append(torch.einsum("bn,bnp->bp", read, state) / below[:, None])
    return torch.stack(rows, 1)


def rwkv4(k: Tensor, v: Tensor, w: Tensor, bonus: Tensor) -> Tensor:
    top = torch.full_like(k[:, 0], -1e30)
    above, below = 0 * k[:, 0], 0 * k[:, 0]
    rows = []
    for i in range(k.shape[1]):
        now = bonus + k[:, i]
        over = torch.maximum(top, now).detach()
        past, new = torch.exp(top - over), torch.exp(now - over)
        rows.append((past * above + new * v[:, i]) / (past * below + new))
        reached = torch.maximum(top - w, k[:, i]).detach()
        keep, take = torch.exp((top - reached) - w), torch.exp(k[:, i] - reached)
        above, below, top = keep * above + take * v[:, i], keep * below + take, reached
    return torch.stack(rows, 1)


def lln(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    top = torch.full_like(k[:, 0], -1e30)
    above, below = 0 * k[:, 0, :, None] * v[:, 0, None], 0 * k[:, 0]
    rows = []
    for i in range(q.shape[1]):
        reached = torch.maximum(top, k[:, i]).detach()
        keep, take = torch.exp(top - reached), torch.exp(k[:, i] - reached)
        above = keep[..., None] * above + take[..., None] * v[:, i, None]
        below, top = keep * below + take, reached
        read = torch.exp(q[:, i] + top - (q[:, i] + top).amax(-1, keepdim=True).detach())
        rows.append(torch.einsum("bn,bnp->bp", read, above) / (read * below).sum(-1)[:, None])
    return torch.stack(rows, 1)


JUDGES: dict[str, Callable[..., Tensor]] = {"mlstm": mlstm, "rwkv4": rwkv4, "lln": lln}
AXES = {"q": "n", "k": "n", "v": "p", "a": "", "b": ""}


def drawn(name: str, scale: float, dtype: torch.dtype, length: int = LENGTH) -> dict[str, Tensor]:
    """Inputs of the ratio, those of `LARGE` times the scale, in numbers of the dtype."""
    torch.manual_seed(round(scale))
    inputs = dict.fromkeys(("k", "v")) if name == "rwkv4" else dict.fromkeys("qkv")
    inputs |= dict.fromkeys("ab") if name == "mlstm" else {}
    out = {}
    for given in inputs:
        axis = "d" if name == "rwkv4" else AXES[given]
        x = torch.randn(2, length, *((SIZES[axis],) if axis else ()), dtype=torch.float64)
        x = x * scale if given in LARGE[name] else x
        out[given] = x.to(dtype)
    return out


def layer(module: ModuleType, name: str, dtype: torch.dtype) -> torch.nn.Module:
    made = getattr(module, f"Ratio{name.capitalize()}")
    sizes = {"d": 4} if name == "rwkv4" else {"n": SIZES["n"], "p": SIZES["p"]}
    return made(**sizes, dtype=dtype)


def judged(name: str, inputs: dict[str, Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Output and gradients of Σ y² of the loop in float64."""
    given = {n: x.detach().double().requires_grad_() for n, x in inputs.items()}
    extra = (torch.ones(4).double(), torch.zeros(4).double()) if name == "rwkv4" else ()
    y = JUDGES[name](*given.values(), *extra)
    return y.detach(), list(torch.autograd.grad(y.square().sum(), list(given.values())))


def ran(
    made: torch.nn.Module, inputs: dict[str, Tensor], **how: object
) -> tuple[Tensor, list[Tensor]]:
    given = [x.detach().requires_grad_() for x in inputs.values()]
    if "a" in inputs:  # a head of its own
        y = made(*(x.unsqueeze(2) for x in given), **how).squeeze(2)
    else:
        y = made(*given, **how)
    return y.detach(), list(torch.autograd.grad(y.double().square().sum(), given))


_NOTHING = 1e-30  # float32 has no use for less


def off(got: tuple[Tensor, list[Tensor]], want: tuple[Tensor, list[Tensor]]) -> tuple[float, float]:
    """Errors of the output and of all gradients, relative to the largest output and gradient.

    Where one token wins, the gradients of keys are differences of equal numbers: they are as exact
    as the largest gradient, not as they themselves.
    """
    (y, slopes), (y_want, slopes_want) = got, want
    largest = max([_NOTHING, *(float(s.abs().max()) for s in slopes_want)])
    worst = max(
        float((a.double() - b).abs().max()) for a, b in zip(slopes, slopes_want, strict=True)
    )
    error = float((y.double() - y_want).abs().max())
    return error / max(_NOTHING, float(y_want.abs().max())), worst / largest
