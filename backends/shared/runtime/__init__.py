"""The runtime of emitted modules: functions that are the same for every mixer.

`dsfc.backends.shared.section` puts the bodies of these files into modules as they stand. Names have
a leading underscore, as no name of a spec has.

| file             | what it holds                                                 |
|------------------|---------------------------------------------------------------|
| `checks.py`      | checks of arguments, and what `explain` says of times         |
| `states.py`      | states as dictionaries, and checks of states                  |
| `numbers.py`     | dtypes of sums and outputs, casts                             |
| `rows.py`        | masks and packs                                               |
| `caches.py`      | rows of states, and room for tokens to come                   |
| `exact.py`       | one token at a time, and states on the way                    |
| `sequences.py`   | tokens of a sequence: filters, reversal, stacks               |
| `functions.py`   | functions of tensors that torch lacks                         |
| `fourier.py`     | Fourier transforms of causal sequences                        |
| `operators.py`   | operators: registration, gradients of any order, costs        |
| `chunks.py`      | chunks of tokens: cutting, carrying states, decays inside     |
| `keyed.py`       | decays of keys                                                |
| `low_rank.py`    | states that each token rewrites: WY forms                     |
| `delta.py`       | states that each token rewrites along its key                 |
| `elementwise.py` | scans without keys                                            |
| `selective.py`   | scans that hold the states of a chunk                         |
| `convolution.py` | a diagonal Λ that is the same at every token                  |
| `dense.py`       | a full Λ that is the same at every token                      |
| `maxima.py`      | running maxima                                                |
| `stepped.py`     | recurrences of any kind, one token after another              |
| `pairs.py`       | sums over all pairs of tokens                                 |
| `attention.py`   | softmax attention                                             |
| `summaries.py`   | Λ̄ and b̄ of a segment; in modules whose sequences are shared   |
| `ranks.py`       | a sequence that processes share; in such modules              |
"""
