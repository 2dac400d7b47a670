/* --- products of matrices ------------------------------------------------------------------ */

OPTIMISE_MORE

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

OPTIMISE_AS_BEFORE
