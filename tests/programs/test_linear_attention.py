"""A recurrence that is proved to be a rule of LinearAttention of ONNX is written as that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.validate.surface import surface

pytest.importorskip("onnxruntime")


def layer_of(mixer: str, folder: Path) -> Any:
    return surface(dsfc.import_module(dsfc.compile(mixer, out=folder))).layer(torch.float32)


def refused(mixer: str, folder: Path) -> str:
    path = folder / "mixer.onnx"
    with pytest.raises(DiagnosticError) as caught:
        dsfc.export(layer_of(mixer, folder), path, to="onnx", operator="linear_attention")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E-EXPORT" and not path.exists()
    return diagnostic.message


def run(path: Path, u: np.ndarray, S: np.ndarray) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(str(path)).run(["y", "S_next"], {"u": u, "S": S}))


def nodes(path: Path) -> list[Any]:
    import onnx

    model = onnx.load(path)
    assert [(x.domain, x.version) for x in model.opset_import] == [("", 27)]
    return list(model.graph.node)


def attributes(node: Any) -> dict[str, Any]:
    import onnx

    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


@pytest.mark.ci
def test_a_retention_is_the_gated_rule_token_by_token(tmp_path: Path) -> None:
    layer = layer_of("retnet", tmp_path)
    path = tmp_path / "retnet.onnx"
    exported = dsfc.export(layer, path, to="onnx", operator="linear_attention")
    assert (exported.inputs, exported.outputs) == (("u", "S"), ("y", "S_next"))
    (node,) = (n for n in nodes(path) if n.op_type == "LinearAttention")
    assert not any(n.op_type == "Scan" for n in nodes(path))
    known = attributes(node)
    assert known["update_rule"] == b"gated" and known["scale"] == 1.0

    rng = np.random.default_rng(0)
    parameters = {n: x.detach().double().numpy() for n, x in layer.state_dict().items()}
    q, k, v = (parameters[f"W_{x}"] for x in "QKV")
    heads, width, d = k.shape
    gamma = 1 - 2.0 ** (-5 - np.arange(heads))
    u = rng.normal(size=(3, 11, d)).astype(np.float32)
    S = rng.normal(size=(3, heads, width, v.shape[1])).astype(np.float32)
    state, rows = S.astype(np.float64), []
    for token in u.astype(np.float64).swapaxes(0, 1):
        at = [np.einsum("had,bd->bha", w, token) for w in (q, k, v)]
        state = gamma[:, None, None] * state + at[1][..., None] * at[2][..., None, :]
        rows.append(np.einsum("bhn,bhnp->bhp", at[0], state) * width**-0.5)
    y, after = run(path, u, S)
    np.testing.assert_allclose(y, np.stack(rows, 1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after, state, rtol=1e-4, atol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize(
    "mixer, rule",
    [
        ("linear_attn", b"linear"),
        ("ssd", b"gated"),
        ("gla", b"gated"),
        ("deltanet", b"delta"),
        ("gated_deltanet", b"gated_delta"),
    ],
)
def test_the_operator_gives_what_the_layer_gives(mixer: str, rule: bytes, tmp_path: Path) -> None:
    layer = layer_of(mixer, tmp_path)
    path = tmp_path / f"{mixer}.onnx"
    exported = dsfc.export(layer, path, to="onnx", operator="linear_attention")
    assert exported.error < 1e-5
    (node,) = (n for n in nodes(path) if n.op_type == "LinearAttention")
    assert attributes(node)["update_rule"] == rule


@pytest.mark.ci
def test_what_has_no_rule_is_refused_and_the_nearest_rule_is_named(tmp_path: Path) -> None:
    assert "no recurrence" in refused("softmax", tmp_path)
    message = refused("rwkv7", tmp_path)
    assert "no update rule of LinearAttention" in message and "gated_delta" in message


def recurrence(loop: Any) -> Any:
    """A call of the gated rule whose loop is another one."""
    from dsfc.programs.linear_attention import RULES, Call

    (rule,) = (r for r in RULES if r.name == "gated")
    axes = {"query": "hn", "key": "hn", "value": "hp", "g": "h"}
    # A recurrence alone is no call in a graph, so it has no node.
    return Call(rule, axes, loop, None, ())  # type: ignore[arg-type]


@pytest.mark.ci
@pytest.mark.parametrize("wrong", ["decay", "state"])
def test_a_loop_that_is_near_a_rule_is_not_proved_to_be_it(wrong: str, tmp_path: Path) -> None:
    """A decay that is squared; and a state that is kept at twice its value."""
    from types import SimpleNamespace

    from dsfc.api.operator_rule import _gap

    def loop(q: Any, k: Any, v: Any, g: Any, S: Any) -> Any:
        q, k, v, g = (x[:, 0] for x in (q, k, v, g))
        if wrong == "decay":
            S = torch.exp(2 * g)[..., None, None] * S + k[..., None] * v[..., None, :]
            return (q[..., None] * S).sum(-2)[:, None], S
        S = torch.exp(g)[..., None, None] * S + 2 * k[..., None] * v[..., None, :]
        return (q[..., None] * S).sum(-2)[:, None] / 2, S

    file: Any = SimpleNamespace(__file__=str(tmp_path / "loop.py"))
    assert "differ" in _gap(file, recurrence(loop), states=True)
