/* --- products of matrices -------------------------------------------------------------------- */

OPTIMISE_MORE

#if VECTOR_BYTES == 64 || defined(__aarch64__)
#define ROWS 8 /* 16 sums in 32 registers */
#else
#define ROWS 6 /* 12 sums in 16 registers */
#endif
#define PANEL (2 * WIDTH) /* columns that are computed at once */
#define TERMS 256         /* terms of a panel that is copied */

/* Terms that count, or entries that are wanted; see above. */
enum { ALL_TERMS, TERMS_UP_TO_ROW, TERMS_FROM_ROW, COLUMNS_UP_TO_ROW };

/* c (+)= a b for `rows` rows of a and `vectors` vectors of columns of b, over k terms: the sums stay
   in registers, one row of b and one number of a at a time. */
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

/* Any number of rows up to ROWS, one vector of columns or two. */
FUNCTION void dot_less(int64_t rows, int64_t vectors, int64_t k, const real *a, int64_t a_row,
                       int64_t a_term, const real *b, int64_t b_term, real *c, int64_t c_row,
                       int accumulate) {
#define DOT_CASE(n, v) \
  case 2 * n + v - 1: \
    dot_tile(n, v, k, a, a_row, a_term, b, b_term, c, c_row, accumulate); \
    break;
  switch (2 * rows + vectors - 1) {
    DOT_CASE(1, 1) DOT_CASE(2, 1) DOT_CASE(3, 1) DOT_CASE(4, 1) DOT_CASE(5, 1) DOT_CASE(6, 1)
    DOT_CASE(1, 2) DOT_CASE(2, 2) DOT_CASE(3, 2) DOT_CASE(4, 2) DOT_CASE(5, 2) DOT_CASE(6, 2)
#if ROWS == 8
    DOT_CASE(7, 1) DOT_CASE(8, 1) DOT_CASE(7, 2) DOT_CASE(8, 2)
#endif
  }
#undef DOT_CASE
}

/* A square of WIDTH rows, transposed: the two halves of its rows are interleaved log2(WIDTH) times. */
#if VECTOR_BYTES / (4 << REAL_IS_DOUBLE) == 16
#define LOW_HALVES 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_HALVES 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif VECTOR_BYTES / (4 << REAL_IS_DOUBLE) == 8
#define LOW_HALVES 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#elif VECTOR_BYTES / (4 << REAL_IS_DOUBLE) == 4
#define LOW_HALVES 0, 4, 1, 5
#define HIGH_HALVES 2, 6, 3, 7
#else
#define LOW_HALVES 0, 2
#define HIGH_HALVES 1, 3
#endif
#if defined(__clang__)
#define INTERLEAVED(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef bits bits_vector __attribute__((vector_size(VECTOR_BYTES)));
#define INTERLEAVED(x, y, ...) __builtin_shuffle(x, y, (bits_vector){__VA_ARGS__})
#endif

INLINE void transpose_square(const real *from, int64_t from_row, real *to, int64_t to_row) {
  vector x[WIDTH], y[WIDTH];
  for (int i = 0; i < WIDTH; i++) x[i] = *(const vector *)(from + i * from_row);
  for (int step = 1; step < WIDTH; step *= 2) {
    for (int i = 0; i < WIDTH / 2; i++) {
      y[2 * i] = INTERLEAVED(x[i], x[i + WIDTH / 2], LOW_HALVES);
      y[2 * i + 1] = INTERLEAVED(x[i], x[i + WIDTH / 2], HIGH_HALVES);
    }
    for (int i = 0; i < WIDTH; i++) x[i] = y[i];
  }
  for (int i = 0; i < WIDTH; i++) *(vector *)(to + i * to_row) = x[i];
}

/* to[j, i] = from[i, j], where rows of both are contiguous. */
FUNCTION void transpose(int64_t rows, int64_t columns, const real *from, int64_t from_row, real *to,
                        int64_t to_row) {
  int64_t i = 0;
  for (; i + WIDTH <= rows; i += WIDTH) {
    int64_t j = 0;
    for (; j + WIDTH <= columns; j += WIDTH)
      transpose_square(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
    for (; j < columns; j++)
      for (int64_t s = i; s < i + WIDTH; s++) to[j * to_row + s] = from[s * from_row + j];
  }
  for (; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) to[j * to_row + i] = from[i * from_row + j];
}

/* A copy of some columns of b, filled up with zeros to whole vectors. */
FUNCTION void copy_panel(int64_t terms, int64_t columns, const real *b, int64_t b_term,
                         int64_t b_column, real *panel, int64_t width) {
  if (b_term == 1 && b_column != 1)
    transpose(columns, terms, b, b_column, panel, width);
  else
    for (int64_t t = 0; t < terms; t++)
      for (int64_t j = 0; j < columns; j++)
        panel[t * width + j] = b[t * b_term + j * b_column];
  for (int64_t t = 0; t < terms; t++)
    for (int64_t j = columns; j < width; j++) panel[t * width + j] = 0;
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

/* Columns of c that are no whole vectors, through a copy. */
FUNCTION void dot_rest(int64_t rows, int64_t columns, int64_t k, const real *a, int64_t a_row,
                       int64_t a_term, const real *b, int64_t b_term, real *c, int64_t c_row,
                       int accumulate) {
  int64_t vectors = (columns + WIDTH - 1) / WIDTH;
  real part[ROWS * PANEL];
  for (int64_t i = 0; accumulate && i < rows; i++)
    for (int64_t j = 0; j < vectors * WIDTH; j++)
      part[i * PANEL + j] = j < columns ? c[i * c_row + j] : 0;
  dot_less(rows, vectors, k, a, a_row, a_term, b, b_term, part, PANEL, accumulate);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) c[i * c_row + j] = part[i * PANEL + j];
}

/* Columns `from` … `from + n` of c, where b has whole vectors of them, one after the other. Its
   terms are those from `before` on. */
FUNCTION void dot_rows(int64_t m, int64_t n, int64_t k, const real *a, int64_t a_row,
                       int64_t a_term, const real *b, int64_t b_term, real *c, int64_t c_row,
                       int accumulate, int terms, int64_t from, int64_t before) {
  for (int64_t i = 0; i < m; i += ROWS) {
    int64_t rows = int_min(ROWS, m - i), first = 0, count = k, end = n;
    if (terms == TERMS_FROM_ROW) first = int_max(0, int_min(i - before, k));
    if (terms == TERMS_UP_TO_ROW) count = int_max(0, int_min(i + rows - before, k));
    if (terms == COLUMNS_UP_TO_ROW) end = int_min(n, i + rows - from);
    count -= first;
    const real *x = a + i * a_row + first * a_term, *y = b + first * b_term;
    real *to = c + i * c_row + from;
    int64_t j = 0;
    if (rows == ROWS)
      for (; j < end && j + PANEL <= n; j += PANEL)
        dot_full(count, x, a_row, a_term, y + j, b_term, to + j, c_row, accumulate);
    for (; j < end; j += PANEL) {
      int64_t columns = int_min(PANEL, n - j);
      if (columns % WIDTH == 0)
        dot_less(rows, columns / WIDTH, count, x, a_row, a_term, y + j, b_term, to + j, c_row,
                 accumulate);
      else
        dot_rest(rows, columns, count, x, a_row, a_term, y + j, b_term, to + j, c_row, accumulate);
    }
  }
}

/* c[i, j] (+)= Σ_t a[i, t] b[t, j], rows of c contiguous, the others in any order. Rows of b are
   read where they lie if they are contiguous; other columns, and the rest of them, are copied. */
FUNCTION void dot(int64_t m, int64_t n, int64_t k, const real *a, int64_t a_row, int64_t a_term,
                  const real *b, int64_t b_term, int64_t b_column, real *c, int64_t c_row,
                  int accumulate, int terms) {
  if (m <= 0 || n <= 0) return;
  if (a_term == 1 && b_term == 1 && (m <= 2 || m * n <= 64) && b_column != 1 && !terms) {
    dot_few(m, n, k, a, a_row, b, b_column, c, c_row, accumulate);
    return;
  }
  int64_t j = b_column != 1 ? 0 : n % WIDTH == 0 ? n : n / PANEL * PANEL;
  if (j > 0) dot_rows(m, j, k, a, a_row, a_term, b, b_term, c, c_row, accumulate, terms, 0, 0);
  real panel[TERMS * PANEL];
  for (; j < n; j += PANEL) {
    int64_t columns = int_min(PANEL, n - j), width = columns > WIDTH ? PANEL : WIDTH;
    for (int64_t t = 0; t < int_max(k, 1); t += TERMS) {
      int64_t count = int_min(TERMS, k - t);
      copy_panel(count, columns, b + t * b_term + j * b_column, b_term, b_column, panel, width);
      dot_rows(m, columns, count, a + t * a_term, a_row, a_term, panel, width, c, c_row,
               accumulate || t > 0, terms, j, t);
    }
  }
}

#define SMALL_INVERSE 16

/* (1 + a)⁻¹ of a strictly lower triangular matrix: small ones row by row, others by halves, as
   [[x, 0], [y, z]]⁻¹ = [[x⁻¹, 0], [-z⁻¹ y x⁻¹, z⁻¹]]. */
FUNCTION void inverse_unit(int64_t n, const real *a, int64_t a_row, real *c, int64_t c_row) {
  if (n > SMALL_INVERSE) {
    int64_t h = (n / 2 + SMALL_INVERSE - 1) / SMALL_INVERSE * SMALL_INVERSE, l = n - h;
    real *low = c + h * c_row, y[l * h];
    inverse_unit(h, a, a_row, c, c_row);
    inverse_unit(l, a + h * a_row + h, a_row, low + h, c_row);
    dot(l, h, h, a + h * a_row, a_row, 1, c, c_row, 1, y, h, 0, ALL_TERMS);
    dot(l, h, l, low + h, c_row, 1, y, h, 1, low, c_row, 0, TERMS_UP_TO_ROW);
    for (int64_t i = 0; i < l; i++)
      for (int64_t j = 0; j < h; j++) low[i * c_row + j] = -low[i * c_row + j];
    for (int64_t i = 0; i < h; i++)
      for (int64_t j = h; j < n; j++) c[i * c_row + j] = 0;
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) c[i * c_row + j] = i == j;
    for (int64_t t = 0; t < i; t++) {
      real x = a[i * a_row + t];
      for (int64_t j = 0; j <= t; j++) c[i * c_row + j] -= x * c[t * c_row + j];
    }
  }
}

OPTIMISE_AS_BEFORE
