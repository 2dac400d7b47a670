"""Words of an emitted module's own text, besides Python's: no name of a spec may take them."""

from __future__ import annotations

from .imports import BOUND

_TEXT = frozenset(
    """
    pytree State States SPEC NAMESPACE MODES CHUNK BLOCK RATES GROWING CAUSAL NO_STEP
    register_flops reference self state states mode chunk return_state carry field dtype wide
    device batch length training forward backward step step_k explain initial_state
    reset_parameters extra_repr i rows past before onward after lag axes name gauge spec mask
    group ranks cu_seqlens lengths counts mix run to_dict from_dict kept cls found TILES SEGMENT
    TRIAL TRUST DEVICES trial triton tl float32_parameters no_weight_decay MAXIMA head_axes
    output_shape mixer mixer_weights load_mixer_weights tensor_parallel_plan write layout index cat
    clone repeat nbytes reserve checkpoints every like
    """.split()
)
# What `nn.Module` has already; parameters and sizes are attributes of the layer.
_LAYER = frozenset(
    """
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double
    dump_patches eval float get_buffer get_extra_state get_parameter get_submodule half ipu
    load_state_dict modules mtia named_buffers named_children named_modules named_parameters
    parameters register_backward_hook register_buffer register_forward_hook
    register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module
    register_parameter register_state_dict_post_hook register_state_dict_pre_hook requires_grad_
    set_extra_state set_submodule share_memory state_dict to to_empty train type xpu zero_grad
    """.split()
)
RESERVED = _TEXT | _LAYER | BOUND
