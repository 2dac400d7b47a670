"""The plan: a kernel graph for the forward system and its adjoint.

A plan says which loops there are, in which modes they run, and what their gradients are; no target
stands in it. `dsfc/fused` moves what a loop's arguments are computed of into its kernel,
`dsfc/kernels` writes that kernel as a program of `dsfc/kernel_ir`, a backend prints the program,
and `dsfc/emit` makes a module of it.

| step                            | files                                                     |
|---------------------------------|-----------------------------------------------------------|
| the values                      | `ir`, `scan_ir`, `recurrence_ir`, `pairs_ir`              |
| from a System                   | `build`, `graph`; a file for each kind of loop            |
| a form of scans                 | `forms/`, a file each                                     |
| the gradient                    | `adjoint`                                                 |
| checks at every compile         | `verify`, `accounting`, `self_test`                       |
| the meaning                     | `evaluate`, `evaluate_adjoint`                            |
"""
