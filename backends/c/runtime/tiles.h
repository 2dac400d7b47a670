/* --- tiles from memory --------------------------------------------------------------------- */

OPTIMISE_MORE

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

/* Stores that leave no copy in the caches, and read nothing before they write. Only whole aligned
   vectors of numbers as they are computed go that way. */
#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
typedef real line __attribute__((vector_size(VECTOR_BYTES), may_alias));
#define STREAM(to, x) __builtin_nontemporal_store(*(const line *)&(x), (line *)(to))
#elif defined(__x86_64__)
typedef float floats __attribute__((vector_size(VECTOR_BYTES), may_alias));
#if VECTOR_BYTES == 64
#define STREAM(to, x) __builtin_ia32_movntps512((float *)(to), *(const floats *)&(x))
#elif VECTOR_BYTES == 32
#define STREAM(to, x) __builtin_ia32_movntps256((float *)(to), *(const floats *)&(x))
#else
#define STREAM(to, x) __builtin_ia32_movntps((float *)(to), *(const floats *)&(x))
#endif
#endif
#if defined(STREAM) && defined(__x86_64__)
#define STREAM_FENCE() __builtin_ia32_sfence()
#else
#define STREAM_FENCE()
#endif

/* Whether an array is so large that the caches would lose it before it is read. */
INLINE int streams(const void *to, int64_t entries) {
  return to && entries * (int64_t)sizeof(real) >= ((int64_t)1 << 23);
}

INLINE int stream_row(real *to, const real *from, int64_t count) {
#if defined(STREAM)
  if (count % WIDTH || (uintptr_t)to % VECTOR_BYTES || (uintptr_t)from % VECTOR_BYTES) return 0;
  for (int64_t i = 0; i < count; i += WIDTH) {
    vector x = *(const vector *)(from + i);
    STREAM(to + i, x);
  }
  return 1;
#else
  return (void)to, (void)from, (void)count, 0;
#endif
}

/* The first entries of a row in memory. */
FUNCTION void store_wide(real *to, const real *from, int64_t count, int streams) {
  if (streams && stream_row(to, from, count)) return;
  for (int64_t i = 0; i < count; i++) to[i] = from[i];
}

FUNCTION void store_row(given *to, const real *from, int64_t count, int streams) {
#if GIVEN_IS == REAL_
  store_wide(to, from, count, streams);
#else
  (void)streams;
  for (int64_t i = 0; i < count; i++) to[i] = narrow(from[i]);
#endif
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

OPTIMISE_AS_BEFORE

#define PAD(entries) (((entries) + 15) / 16 * 16)

/* Memory of a thread, aligned for vectors; at least one line of it. */
FUNCTION real *allocate(int64_t entries) {
  return aligned_alloc(64, (size_t)(PAD(entries) + 16) * sizeof(real) / 64 * 64 + 64);
}
