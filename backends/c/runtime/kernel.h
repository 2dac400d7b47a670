/* What printed kernels call: numbers, functions, products of matrices, tiles from memory.

   Plain C11 with the vector types of gcc and clang: no header of torch, no intrinsics, no fast-math.

   Compiled with
     -DREAL_IS_DOUBLE=0|1   `real`, in which a kernel computes: float or double
     -DGIVEN_IS=...         `given`, as the caller's tensors lie in memory: REAL_ as `real`, SINGLE_
                            float, HALF_ IEEE's 16 bits, BRAIN_ bfloat16; widen and narrow convert

   A kernel is `int name(const int64_t *given_)`: of each tensor that it reads the address and the
   strides, of each dense one that it writes the address, then sizes, then the number of threads. It
   returns 0, or 1 where it got no memory.

   Matrices. An argument is a pointer with one stride per axis, counted in entries, so a transposed
   matrix is the same memory with its strides exchanged. `a_row` steps to the next row of a,
   `a_term` along the axis that is summed over. Rows of results are contiguous. Operands and results
   lie apart from each other.

     dot(m, n, k, a, a_row, a_term, b, b_term, b_column, c, c_row, accumulate, terms)
         c[i, j] = Σ_t a[i, t] b[t, j], or += with `accumulate`; i < m, j < n, t < k
         terms:  ALL_TERMS          all of it
                 TERMS_UP_TO_ROW    a is lower triangular: t ≤ i. What it holds above is 0 (blocks on
                                    the diagonal are multiplied whole)
                 TERMS_FROM_ROW     a is upper triangular: t ≥ i, likewise
                 COLUMNS_UP_TO_ROW  of c only j ≤ i is wanted; what it holds above is undefined
     keep_lower(m, n, c, c_row, strict)      zeros for j > i, for j ≥ i with `strict`
     inverse_unit(n, a, a_row, c, c_row)     c = (1 + a)⁻¹, a strictly lower triangular; what a
                                             holds on and above its diagonal is not read
     transpose(m, n, a, a_row, c, c_row)     c[j, i] = a[i, j], rows of both contiguous
     store_row(c, a, n, streams)             c[j] = a[j], j < n; past the caches with `streams`

   Functions of a number are `real_` and the name of the primitive. */

#include "numbers.h"

#include "functions.h"

#include "products.h"

#include "tiles.h"
