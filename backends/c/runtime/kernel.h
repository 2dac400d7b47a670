/* What printed kernels call: numbers, exponentials, products of matrices, tiles from memory.

   Plain C11 with the vector types of gcc and clang: no header of torch, no intrinsics, no fast-math.
   Compiled with -DREAL_IS_DOUBLE=0|1 (what sums are kept in) and -DGIVEN_IS=REAL_|HALF_|BRAIN_
   (how the caller's tensors lie in memory). Strides count entries. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if REAL_IS_DOUBLE
typedef double real;
typedef int64_t bits;
#else
typedef float real;
typedef int32_t bits;
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define WIDTH ((int64_t)(VECTOR_BYTES / sizeof(real)))
typedef real vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define FUNCTION static __attribute__((noinline, unused))

INLINE int64_t int_min(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t int_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* Rounds down, as the kernels do; divisors are positive. */
INLINE int64_t int_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* --- numbers as they lie in memory --------------------------------------------------------- */

#define REAL_ 0
#define HALF_ 1
#define BRAIN_ 2
#if GIVEN_IS == REAL_
typedef real given;
INLINE real widen(given x) { return x; }
INLINE given narrow(real x) { return x; }
#elif GIVEN_IS == BRAIN_
typedef uint16_t given;
INLINE real widen(given x) {
  uint32_t u = (uint32_t)x << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
INLINE given narrow(real x) { /* to nearest, ties to even; nan stays nan */
  float f = (float)x;
  uint32_t u;
  memcpy(&u, &f, 4);
  uint32_t rounded = u + 0x7fff + ((u >> 16) & 1);
  return (given)((u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : rounded >> 16);
}
#else
typedef uint16_t given;
INLINE real widen(given x) {
  uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = (uint32_t)(x & 0x7fff) << 13;
  float f, two_112 = 5.192296858534828e33f;
  memcpy(&f, &rest, 4);
  f *= two_112; /* the exponents' biases differ by 112; subnormals come out right */
  uint32_t u;
  memcpy(&u, &f, 4);
  u = ((x & 0x7c00) == 0x7c00 ? u | 0x7f800000 : u) | sign;
  memcpy(&f, &u, 4);
  return f;
}
INLINE given narrow(real x) { /* to nearest, ties to even */
  float f = (float)x;
  uint32_t u;
  memcpy(&u, &f, 4);
  uint32_t sign = (u >> 16) & 0x8000, size = u & 0x7fffffff;
  float g, half = 0.5f; /* for subnormal halves, adding 1/2 puts the last bit in its place */
  memcpy(&g, &size, 4);
  g += half;
  uint32_t small;
  memcpy(&small, &g, 4);
  uint32_t usual = (size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13;
  uint32_t out = size < 0x38800000 ? small - 0x3f000000 : usual;
  out = size >= 0x477ff000 ? 0x7c00 : out;
  out = size > 0x7f800000 ? 0x7e00 : out;
  return (given)(out | sign);
}
#endif

/* --- functions of one number --------------------------------------------------------------- */

INLINE real two_to(bits n) { /* 2^n for exponents of normal numbers */
#if REAL_IS_DOUBLE
  int64_t u = (n + 1023) << 52;
#else
  int32_t u = (n + 127) << 23;
#endif
  real f;
  memcpy(&f, &u, sizeof f);
  return f;
}

/* e^x = 2^n e^r with |r| ≤ log(2) / 2; 2^n in two halves, as the ends are no normal numbers. */
INLINE real real_exp(real x) {
#if REAL_IS_DOUBLE
  const real top = 709.79, low = -745.2, magic = 6755399441055744.0;
  real y = x > top ? top : x;
  y = y < low ? low : y;
  real n = y * 1.4426950408889634 + magic;
  int64_t whole;
  memcpy(&whole, &n, 8);
  whole -= 0x4338000000000000; /* the low bits of the sum are the integer */
  n -= magic;
  real r = y - n * 0.693147180369123816490e+00;
  real t = r - n * 1.90821492927058770002e-10;
  real p = 1.6059043836821613e-10;
  p = p * t + 2.0876756987868100e-09;
  p = p * t + 2.5052108385441720e-08;
  p = p * t + 2.7557319223985893e-07;
  p = p * t + 2.7557319223985888e-06;
  p = p * t + 2.4801587301587302e-05;
  p = p * t + 1.9841269841269841e-04;
  p = p * t + 1.3888888888888889e-03;
  p = p * t + 8.3333333333333332e-03;
  p = p * t + 4.1666666666666664e-02;
  p = p * t + 1.6666666666666666e-01;
  p = p * t + 0.5;
  p = p * (t * t) + t + 1.0;
  bits half = whole >> 1;
#else
  const real top = 89.0f, low = -104.0f, magic = 12582912.0f;
  real y = x > top ? top : x;
  y = y < low ? low : y;
  real n = y * 1.44269504f + magic;
  int32_t whole;
  memcpy(&whole, &n, 4);
  whole -= 0x4b400000;
  n -= magic;
  real r = y - n * 0.693359375f;
  real t = r - n * -2.12194440e-4f;
  real p = 1.9875691500e-4f;
  p = p * t + 1.3981999507e-3f;
  p = p * t + 8.3334519073e-3f;
  p = p * t + 4.1665795894e-2f;
  p = p * t + 1.6666665459e-1f;
  p = p * t + 5.0000001201e-1f;
  p = p * (t * t) + t + 1.0f;
  bits half = whole >> 1;
#endif
  real e = p * two_to(half) * two_to((bits)(whole - half));
  return x != x ? x : e;
}

INLINE real real_max(real x, real y) { return x > y || x != x ? x : y; }
INLINE real real_min(real x, real y) { return x < y || x != x ? x : y; }

/* --- products of matrices ------------------------------------------------------------------ */

/* Kernels are compiled with -O2, which takes a quarter of the time; with it, these would keep their
   sums in memory. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

/* c (+)= a b for `rows` rows of a and `vectors` vectors of columns of b, over k terms: the sums stay
   in registers, one row of b and one number of a at a time. */
#if VECTOR_BYTES == 64 || defined(__aarch64__)
#define ROWS 8 /* 16 sums in 32 registers */
#else
#define ROWS 6 /* 12 sums in 16 registers */
#endif
INLINE void dot_tile(const int rows, const int vectors, int64_t k, const real *a, int64_t a_row,
                     int64_t a_term, const real *b, int64_t b_term, real *c, int64_t c_row,
                     int accumulate) {
  vector sum[ROWS][2];
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < vectors; j++)
      sum[i][j] = accumulate ? *(const vector *)(c + i * c_row + j * WIDTH) : (vector){0};
  for (int64_t t = 0; t < k; t++) {
    vector y[2];
    for (int j = 0; j < vectors; j++) y[j] = *(const vector *)(b + t * b_term + j * WIDTH);
    for (int i = 0; i < rows; i++) {
      real x = a[i * a_row + t * a_term];
      for (int j = 0; j < vectors; j++) sum[i][j] += x * y[j];
    }
  }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < vectors; j++) *(vector *)(c + i * c_row + j * WIDTH) = sum[i][j];
}

FUNCTION void dot_full(int64_t k, const real *a, int64_t a_row, int64_t a_term, const real *b,
                       int64_t b_term, real *c, int64_t c_row, int accumulate) {
  dot_tile(ROWS, 2, k, a, a_row, a_term, b, b_term, c, c_row, accumulate);
}

/* Fewer rows than ROWS, or one vector of columns. */
FUNCTION void dot_less(int64_t rows, int64_t vectors, int64_t k, const real *a, int64_t a_row,
                       int64_t a_term, const real *b, int64_t b_term, real *c, int64_t c_row,
                       int accumulate) {
#define DOT_CASE(n, v) \
  case 2 * n + v - 1: \
    dot_tile(n, v, k, a, a_row, a_term, b, b_term, c, c_row, accumulate); \
    break;
  switch (2 * rows + vectors - 1) {
    DOT_CASE(1, 1) DOT_CASE(2, 1) DOT_CASE(3, 1) DOT_CASE(4, 1) DOT_CASE(5, 1) DOT_CASE(6, 1)
    DOT_CASE(1, 2) DOT_CASE(2, 2) DOT_CASE(3, 2) DOT_CASE(4, 2) DOT_CASE(5, 2)
#if ROWS == 8
    DOT_CASE(7, 1) DOT_CASE(8, 1) DOT_CASE(6, 2) DOT_CASE(7, 2)
#endif
  }
#undef DOT_CASE
}

/* Less than a vector of columns: through copies filled up with zeros. */
FUNCTION void dot_rest(int64_t rows, int64_t columns, int64_t k, const real *a, int64_t a_row,
                       int64_t a_term, const real *b, int64_t b_term, real *c, int64_t c_row,
                       int accumulate) {
  real b_part[k * WIDTH + 1], c_part[ROWS * WIDTH];
  for (int64_t t = 0; t < k; t++)
    for (int64_t j = 0; j < WIDTH; j++) b_part[t * WIDTH + j] = j < columns ? b[t * b_term + j] : 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < WIDTH; j++)
      c_part[i * WIDTH + j] = accumulate && j < columns ? c[i * c_row + j] : 0;
  dot_less(rows, 1, k, a, a_row, a_term, b_part, WIDTH, c_part, WIDTH, accumulate);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) c[i * c_row + j] = c_part[i * WIDTH + j];
}

/* Terms that count, of row i of the result. */
enum { ALL_TERMS, TERMS_UP_TO_ROW, TERMS_FROM_ROW };

/* c (+)= a b, where rows of b and c are contiguous. */
FUNCTION void dot_rows(int64_t m, int64_t n, int64_t k, const real *a, int64_t a_row,
                       int64_t a_term, const real *b, int64_t b_term, real *c, int64_t c_row,
                       int accumulate, int terms) {
  for (int64_t i = 0; i < m; i += ROWS) {
    int64_t rows = int_min(ROWS, m - i);
    int64_t first = terms == TERMS_FROM_ROW ? int_min(i, k) : 0;
    int64_t end = terms == TERMS_UP_TO_ROW ? int_min(i + rows, k) : k;
    const real *x = a + i * a_row + first * a_term, *y = b + first * b_term;
    real *to = c + i * c_row;
    int64_t j = 0, count = end - first;
    for (; j + 2 * WIDTH <= n; j += 2 * WIDTH)
      if (rows == ROWS)
        dot_full(count, x, a_row, a_term, y + j, b_term, to + j, c_row, accumulate);
      else
        dot_less(rows, 2, count, x, a_row, a_term, y + j, b_term, to + j, c_row, accumulate);
    for (; j + WIDTH <= n; j += WIDTH)
      dot_less(rows, 1, count, x, a_row, a_term, y + j, b_term, to + j, c_row, accumulate);
    if (j < n)
      dot_rest(rows, n - j, count, x, a_row, a_term, y + j, b_term, to + j, c_row, accumulate);
  }
}

/* Rows and columns of a matrix exchanged. */
FUNCTION void transpose(int64_t rows, int64_t columns, const real *from, int64_t from_row,
                        int64_t from_column, real *to, int64_t to_row, int add) {
  for (int64_t i0 = 0; i0 < rows; i0 += 16)
    for (int64_t j0 = 0; j0 < columns; j0 += 16) {
      int64_t i1 = int_min(i0 + 16, rows), j1 = int_min(j0 + 16, columns);
      for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++) {
          real x = from[i * from_row + j * from_column];
          to[j * to_row + i] = add ? to[j * to_row + i] + x : x;
        }
    }
}

INLINE real sum_of(vector x) {
  real sum = 0;
  for (int64_t i = 0; i < WIDTH; i++) sum += x[i];
  return sum;
}

/* Few products of rows with rows: c[i, j] (+)= Σ_t a[i, t] b[j, t]. */
FUNCTION void dot_few(int64_t m, int64_t n, int64_t k, const real *a, int64_t a_row, const real *b,
                      int64_t b_row, real *c, int64_t c_row, int accumulate) {
  int64_t whole = k / WIDTH * WIDTH;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      const real *x = a + i * a_row, *y = b + j * b_row;
      vector sum = {0};
      for (int64_t t = 0; t < whole; t += WIDTH)
        sum += *(const vector *)(x + t) * *(const vector *)(y + t);
      real total = sum_of(sum);
      for (int64_t t = whole; t < k; t++) total += x[t] * y[t];
      c[i * c_row + j] = accumulate ? c[i * c_row + j] + total : total;
    }
}

/* c[i, j] (+)= Σ_t a[i, t] b[t, j], rows of c contiguous, the others in any order. Where rows of b
   are not contiguous, b is transposed, or the whole product where that is less work. */
FUNCTION void dot(int64_t m, int64_t n, int64_t k, const real *a, int64_t a_row, int64_t a_term,
                  const real *b, int64_t b_term, int64_t b_column, real *c, int64_t c_row,
                  int accumulate, int terms) {
  if (m <= 0 || n <= 0) return;
  if (b_column == 1) {
    dot_rows(m, n, k, a, a_row, a_term, b, b_term, c, c_row, accumulate, terms);
    return;
  }
  if (a_term == 1 && b_term == 1 && m * n <= 64 && terms == ALL_TERMS) {
    dot_few(m, n, k, a, a_row, b, b_column, c, c_row, accumulate);
    return;
  }
  if (m < n && terms == ALL_TERMS && b_term == 1) { /* cᵀ = bᵀ aᵀ */
    real at[k * m], ct[n * m];
    transpose(m, k, a, a_row, a_term, at, m, 0);
    dot_rows(n, m, k, b, b_column, b_term, at, m, ct, m, 0, ALL_TERMS);
    transpose(n, m, ct, m, 1, c, c_row, accumulate);
    return;
  }
  real bt[k * n];
  transpose(n, k, b, b_column, b_term, bt, n, 0);
  dot_rows(m, n, k, a, a_row, a_term, bt, n, c, c_row, accumulate, terms);
}

/* (1 + a)⁻¹ of a strictly lower triangular matrix, row by row. */
FUNCTION void inverse_unit(int64_t n, const real *a, int64_t a_row, real *c, int64_t c_row) {
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) c[i * c_row + j] = i == j;
    for (int64_t t = 0; t < i; t++) {
      real x = a[i * a_row + t];
      for (int64_t j = 0; j <= t; j++) c[i * c_row + j] -= x * c[t * c_row + j];
    }
  }
}

/* --- tiles from memory --------------------------------------------------------------------- */

/* Rows and columns that exist, the rest of the tile filled up with zeros. */
FUNCTION void load_tile(real *to, int64_t to_row, int64_t rows, int64_t columns, const given *from,
                        int64_t from_row, int64_t from_column, int64_t live_rows,
                        int64_t live_columns) {
  live_rows = int_max(0, int_min(rows, live_rows));
  live_columns = int_max(0, int_min(columns, live_columns));
  for (int64_t i = 0; i < live_rows; i++) {
    if (from_column == 1)
      for (int64_t j = 0; j < live_columns; j++) to[i * to_row + j] = widen(from[i * from_row + j]);
    else
      for (int64_t j = 0; j < live_columns; j++)
        to[i * to_row + j] = widen(from[i * from_row + j * from_column]);
    for (int64_t j = live_columns; j < columns; j++) to[i * to_row + j] = 0;
  }
  for (int64_t i = live_rows; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) to[i * to_row + j] = 0;
}

FUNCTION void load_wide(real *to, int64_t to_row, int64_t rows, int64_t columns, const real *from,
                        int64_t from_row, int64_t from_column, int64_t live_rows,
                        int64_t live_columns) {
  live_rows = int_max(0, int_min(rows, live_rows));
  live_columns = int_max(0, int_min(columns, live_columns));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      to[i * to_row + j] =
          i < live_rows && j < live_columns ? from[i * from_row + j * from_column] : 0;
}

/* Products over what lies between two tokens: x[j+1] … x[i] at (i, j), 0 for j > i; with `exclusive`
   x[j+1] … x[i-1], and 0 for j ≥ i. */
FUNCTION void between(int64_t n, const real *x, int64_t x_step, real *to, int64_t to_row,
                      int exclusive) {
  for (int64_t i = 0; i < n; i++) {
    real *row = to + i * to_row;
    int64_t own = i - exclusive; /* the last column that has an entry */
    for (int64_t j = 0; j < n; j++) row[j] = 0;
    if (own < 0) continue;
    row[own] = 1;
    real factor = x[own * x_step];
    for (int64_t j = 0; j < own; j++) row[j] = row[j - to_row] * factor;
  }
}

/* Zeros above the diagonal; with `strict` on it too. */
FUNCTION void keep_lower(int64_t rows, int64_t columns, real *x, int64_t x_row, int strict) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = i + 1 - strict; j < columns; j++) x[i * x_row + j] = 0;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#define PAD(entries) (((entries) + 15) / 16 * 16)

/* Memory of a thread, aligned for vectors; at least one line of it. */
FUNCTION real *allocate(int64_t entries) {
  return aligned_alloc(64, (size_t)(PAD(entries) + 16) * sizeof(real) / 64 * 64 + 64);
}
