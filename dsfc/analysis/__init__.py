"""Analyses of a mixer in numbers, at given sizes, parameters and tokens.

| file           | what it computes                                                     |
|----------------|----------------------------------------------------------------------|
| `point.py`     | sizes, parameters as a spec starts them, tokens                      |
| `widen.py`     | a System run on many vectors at once                                 |
| `spectrum.py`  | eigenvalues of Λ, ratios of normalisers, half-lives                  |
| `kernel.py`    | Φ, memory functions, Λ, B, C, D                                      |
| `influence.py` | Jacobians by the adjoint, influence by distance, its bound           |
| `frequency.py` | frequency responses, low-pass or not                                 |
| `smoothing.py` | over-smoothing: bound, violations, sharpness                         |
| `accounts.py`  | multiply-adds, numbers moved, state and cache                        |
| `analysis.py`  | all of them at one point                                             |
| `data.py`      | tokens from files of NumPy                                           |
| `pictures.py`  | all of them as charts                                                |
| `shown.py`     | what notebooks show                                                  |
"""
