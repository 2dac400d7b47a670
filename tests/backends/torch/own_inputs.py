"""A mixer whose layer has a map for each input, for tests of layers and of their check."""

OWN_INPUTS = """
  dims p, heads h, bias, d = 2 * p
  input q : h × bias; k : h × bias; v : p × h
  param w : d
  state S : p × h × bias
  S = 1/2 * S[i-1] + v ⊗ k
  y = sum[bias](q * S) * sum[d](w)
"""
"""Each input has a map, heads stand behind channels, and an axis is called as an argument is."""
