"""What a layer that flash-linear-attention (fla) calls takes, returns, keeps and refuses."""

from __future__ import annotations

import importlib
import inspect
import warnings
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from fla_layers import ENTRY, Cache, layers, through, tokens
from torch import Tensor, nn

import dsfc

ROWS = torch.tensor([1, 1, 0])
"""Which row each beam goes on from."""

NAMED_LIKE_FLA = """
  dims d, heads num_heads = 2, layer_idx = 3
  input u : d
  param hidden_size, options : d -> num_heads × layer_idx
  state S : num_heads × layer_idx
  S = 1/2 * S[i-1] + hidden_size u * options u
  y = S"""
"""A mixer whose names are those of the arguments."""


@pytest.fixture(scope="module")
def gla(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("gla")
    return dsfc.import_module(dsfc.compile("gla", out=folder, layer=True, signature="fla"))


@pytest.fixture
def made(gla: ModuleType) -> Any:
    return layers(gla)[1]


@pytest.fixture
def u(made: Any) -> Tensor:
    return tokens(made.d, 3, 7)


def test_arguments_and_results_are_those_of_fla(gla: ModuleType, made: Any, u: Tensor) -> None:
    parameters = inspect.signature(gla.GlaLayerForFla.forward).parameters
    assert list(parameters)[1:6] == [
        "hidden_states", "attention_mask", "past_key_values", "use_cache", "output_attentions",
    ]  # fmt: skip
    layer = gla.GlaLayerForFla(hidden_size=8, num_heads=2, layer_idx=3, mode="chunk", n=5)
    assert (layer.mixer.h, layer.mixer.n, layer.layer_idx, layer.mode) == (2, 5, 3, "chunked")
    assert "layer_idx=3, mode=chunked" in repr(layer)
    result = made(u, position_ids=None, cache_position=None, output_attentions=False)
    assert len(result) == 3 and result[1:] == (None, None)


def test_the_text_grows_by_a_class_and_only_where_it_is_asked_for(gla: ModuleType) -> None:
    text, without = inspect.getsource(gla), dsfc.load("gla").module(layer=True).text
    start, end = text.index("class GlaLayerForFla"), text.index("\ndef gla(") + 1
    rest = (text[:start] + text[end:]).replace('"GlaLayerForFla", ', "").splitlines()
    other = [(a, b) for a, b in zip(rest, without.splitlines(), strict=True) if a != b]
    assert [a.split(":")[0].split(" =")[0] for a, _ in other] == [
        "# Written by dsfc 0.1.0 (torch backend, layer, signature fla) from gla.dsf.",
        "# sha256 of the lines below",
        "NAMESPACE",
    ]


def test_a_cache_is_read_and_left_alone_without_use_cache(made: Any, u: Tensor) -> None:
    """A model hands the cache that a layer returns to the next one: it may not be lost."""
    cache = Cache()
    through(made, u[:, :4], cache, (4,))
    before = cache[ENTRY]["recurrent_state"]
    y, _, kept = made(u[:, 4:], None, cache, use_cache=False)
    assert kept is cache and cache.get_seq_length(ENTRY) == 4
    assert cache[ENTRY]["recurrent_state"] is before
    torch.testing.assert_close(y, made(u)[0][:, 4:])
    assert made(u, None, None, use_cache=True)[2] is None


def test_states_of_others_in_an_entry_stay(made: Any, u: Tensor) -> None:
    cache, other = Cache(), torch.ones(3)
    cache.update(ffn_state=other, layer_idx=ENTRY, offset=0)
    parts = through(made, u, cache, (3, 7))
    assert cache[ENTRY]["ffn_state"] is other
    torch.testing.assert_close(parts, made(u)[0])


def test_beams_go_on_from_the_rows_that_they_chose(made: Any, u: Tensor) -> None:
    cache = Cache()
    through(made, u[:, :4], cache, (4,))
    cache.reorder_cache(ROWS)
    y = made(u[:, 4:], None, cache, True)[0]
    torch.testing.assert_close(y, made(torch.cat((u[ROWS, :4], u[:, 4:]), 1))[0][:, 4:])


def test_a_token_that_is_masked_while_decoding_is_not_there(made: Any, u: Tensor) -> None:
    mask = torch.ones(3, 7, dtype=torch.bool)
    mask[1, 4] = False
    parts = through(made, u, Cache(), (4, 5, 6, 7), mask)
    assert not parts[1, 4].any()
    alone = made(u[1:2, [0, 1, 2, 3, 5, 6]])[0]
    torch.testing.assert_close(parts[1:2, [0, 1, 2, 3, 5, 6]], alone)


@pytest.mark.parametrize(
    ("word", "mode"), [("chunk", "chunked"), ("fused_recurrent", "recurrent"), ("exact", "exact")]
)
def test_a_mode_is_of_every_call(gla: ModuleType, u: Tensor, word: str, mode: str) -> None:
    plain, layer = layers(gla)
    layer = gla.GlaLayerForFla(plain.d, plain.mixer.h, n=plain.mixer.n, p=plain.mixer.p,
                               r=plain.mixer.r, mode=word, layer_idx=0, dtype=u.dtype)  # fmt: skip
    layer.load_state_dict(plain.state_dict())
    want = plain(u, mode=mode)
    assert torch.equal(layer(u)[0], want)
    parts = through(layer, u, Cache(), (3, 4, 7))
    if mode == "exact":
        assert torch.equal(parts, want)
    torch.testing.assert_close(parts, want)


def test_states_stay_wide_in_narrow_layers(gla: ModuleType) -> None:
    layer = gla.GlaLayerForFla(8, 2, layer_idx=0).bfloat16()
    cache = Cache()
    narrow = through(layer, tokens(8, 2, 3).bfloat16(), cache, (2, 3))
    assert narrow.dtype == torch.bfloat16
    assert [x.dtype for x in cache[0]["recurrent_state"]] == [torch.float32]


class Keys:
    """A cache of keys and values, as transformers has."""

    def __len__(self) -> int:
        return 0

    def update(self, keys: Tensor, values: Tensor, layer_idx: int) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"output_attentions": True}, ValueError, "keeps no weights of pairs"),
        ({"attention_mask": torch.ones(3, 6).long()}, ValueError, r"T ≥ 7, got \[3, 6\]"),
        ({"attention_mask": torch.ones(3, 7, 7).long()}, ValueError, "must be"),
        ({"attention_mask": torch.zeros(3, 7)}, TypeError, "0 and 1, got torch.float32"),
        ({"past_key_values": object()}, TypeError, "object has no entry"),
        ({"past_key_values": Keys(), "use_cache": True}, TypeError, "Keys takes no recurrent"),
    ],
)
def test_what_it_cannot_do_is_refused(
    made: Any, u: Tensor, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        made(u, **given)


def test_entries_of_other_layers_and_layers_without_number_are_refused(
    gla: ModuleType, made: Any, u: Tensor
) -> None:
    for other in (torch.ones(3, 2), (torch.ones(3, 2), torch.ones(3))):
        cache = Cache()
        cache.update(recurrent_state=other, layer_idx=ENTRY)
        with pytest.raises(ValueError, match="entry 2 of the cache is another layer's: not the"):
            made(u, None, cache)
    cache.update(recurrent_state=(torch.ones(3, 2),), layer_idx=ENTRY)
    with pytest.raises(ValueError, match="S must be"):
        made(u, None, cache)
    with pytest.raises(ValueError, match="needs layer_idx"):
        gla.GlaLayerForFla(8)(tokens(8, 1, 2).float(), None, Cache())
    with pytest.raises(ValueError, match="mode must be"):
        gla.GlaLayerForFla(8, mode="fused")
    with pytest.raises(TypeError, match="expand_k"):
        gla.GlaLayerForFla(8, expand_k=0.5)


def test_a_mixer_may_use_the_names_of_the_arguments(tmp_path: Path) -> None:
    spec = tmp_path / "named.dsf"
    spec.write_text(f"mixer named {{\n{NAMED_LIKE_FLA}\n}}\n", encoding="utf-8")
    module = dsfc.import_module(dsfc.compile(spec, out=tmp_path, layer=True, signature="fla"))
    layer = module.NamedLayerForFla(4, num_heads=3, layer_idx=0, layer_idx_=5, dtype=torch.float64)
    assert layer.mixer.output_shape == (3, 5) and layer.layer_idx == 0
    u = tokens(4, 2, 5)
    torch.testing.assert_close(through(layer, u, Cache(), (2, 3, 5)), layer(u)[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"signature": "fla"}, "is of a layer"),
        ({"signature": "fla", "layer": True, "context_parallel": True}, "no group"),
        ({"signature": "jax", "layer": True}, "jax"),
    ],
)
def test_what_no_module_can_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dsfc.load("gla").module(**options)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_one_graph_holds_a_padded_call(made: Any, u: Tensor) -> None:
    mask = (torch.arange(7) >= torch.tensor([3, 0, 1])[:, None]).long()
    torch._dynamo.reset()
    graph = torch.compile(lambda u, mask: made(u, mask)[0], backend="eager", fullgraph=True)
    torch.testing.assert_close(graph(u, mask), made(u, mask)[0])


class Mlp(nn.Module):
    """Stands for fla's, whose kernels need a GPU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x: Tensor, **kwargs: Any) -> Tensor:
        return torch.tanh(self.map(x))


def of_fla(name: str) -> ModuleType:
    """A module of the package flash-linear-attention."""
    try:
        metadata.distribution("flash-linear-attention")
    except metadata.PackageNotFoundError:
        # Nothing of dsfc needs the package, and its kernels want a GPU, so no extra installs it.
        pytest.skip("flash-linear-attention is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that there is no GPU
        return importlib.import_module(name)


@pytest.mark.ci
def test_a_model_of_fla_generates_with_its_cache_what_it_generates_without(
    gla: ModuleType, tmp_path: Path
) -> None:
    """Greedy and with beams, padded on the left; in blocks of fla's GLA, two mixers by turns."""
    models, caches = of_fla("fla.models"), of_fla("fla.models.utils")
    block = dsfc.compile("gla_block", out=tmp_path, layer=True, signature="fla")
    kinds = (gla.GlaLayerForFla, dsfc.import_module(block).GlaBlockLayerForFla)
    config = models.GLAConfig(
        hidden_size=16, num_hidden_layers=2, num_heads=2, vocab_size=40, pad_token_id=0,
        fuse_norm=False, fuse_cross_entropy=False, bos_token_id=1, eos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    model = models.GLAForCausalLM(config)
    for n, part in enumerate(model.model.layers):
        part.attn = kinds[n % 2](config.hidden_size, config.num_heads, layer_idx=n)
        part.mlp = Mlp(config.hidden_size)
    model = model.double().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p), alpha=0.2)
    prompts = torch.randint(2, 40, (3, 6))
    mask = (torch.arange(6) >= torch.tensor([2, 0, 1])[:, None]).long()
    with torch.no_grad():
        want = model(prompts, attention_mask=mask, use_cache=False)
        assert want.past_key_values is None
        cache, parts = caches.Cache(), []
        for start, end in ((0, 4), (4, 5), (5, 6)):
            given = {"attention_mask": mask[:, :end], "past_key_values": cache, "use_cache": True}
            parts.append(model(prompts[:, start:end], **given).logits)
    torch.testing.assert_close(torch.cat(parts, 1)[mask.bool()], want.logits[mask.bool()])
    assert cache.get_seq_length() == 6 and len(cache[1]["recurrent_state"]) == 5
    for beams in (1, 2):
        way = {"max_new_tokens": 4, "do_sample": False, "num_beams": beams}
        with_states, without = (
            model.generate(prompts, attention_mask=mask, use_cache=use, **way)
            for use in (True, False)
        )
        assert torch.equal(with_states, without)
    model.train()(prompts, labels=prompts).loss.backward()
    assert all(p.grad is not None for p in model.parameters())
