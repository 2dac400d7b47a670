"""The kernel IR: programs over tiles with named axes, which targets print as C or as Triton."""
