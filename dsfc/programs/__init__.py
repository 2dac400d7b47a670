"""Programs of layers: what PyTorch and ONNX Runtime load without the emitted module and dsfc.

A program is a layer with its parameters as a function of named tensors: the inputs and the state
before, to the output and the state after. `program` traces it, `token_loop` replaces the operators
that the module registers by a loop over tokens, `targets` writes files, `agreement` runs a program
beside its layer.
"""
