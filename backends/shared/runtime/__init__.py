"""The runtime of emitted modules: functions that are the same for every mixer.

`dsfc.backends.shared.section` puts the bodies of these files into modules as they stand. Names have
a leading underscore, as no name of a spec has.

| file           | what it holds                                        |
|----------------|------------------------------------------------------|
| `checks.py`    | checks of arguments                                  |
| `numbers.py`   | dtypes of sums and outputs, casts                    |
| `rows.py`      | masks and packs                                      |
| `sequences.py` | tokens of a sequence: filters, reversal, stacks      |
| `functions.py` | functions of tensors that torch lacks                |
| `fourier.py`   | Fourier transforms of causal sequences               |
"""
