"""The shipped specs of whole blocks of models, as data: mixers with what stands around them."""
