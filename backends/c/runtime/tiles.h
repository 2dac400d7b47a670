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
