/* --- numbers ------------------------------------------------------------------------------- */

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

/* gcc's -O2 takes a quarter of the time of -O3; but with it, products of matrices would keep their
   sums in memory. */
#if defined(__GNUC__) && !defined(__clang__)
#define OPTIMISE_MORE _Pragma("GCC push_options") _Pragma("GCC optimize(\"O3\")")
#define OPTIMISE_AS_BEFORE _Pragma("GCC pop_options")
#else
#define OPTIMISE_MORE
#define OPTIMISE_AS_BEFORE
#endif

/* As the caller's tensors lie in memory. */

#define REAL_ 0
#define HALF_ 1
#define BRAIN_ 2
#define SINGLE_ 3
#if GIVEN_IS == REAL_ || GIVEN_IS == SINGLE_
#if GIVEN_IS == REAL_
typedef real given;
#else
typedef float given;
#endif
INLINE real widen(given x) { return (real)x; }
INLINE given narrow(real x) { return (given)x; }
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
  uint32_t usual = rest + 0x38000000; /* the exponents' biases differ by 112 */
  usual = rest >= 0x0f800000 ? usual + 0x38000000 : usual; /* infinity and nan */
  uint32_t above = rest + 0x38800000; /* of a subnormal: 2^-14 more than it */
  float f, least = 6.103515625e-05f;
  memcpy(&f, &above, 4);
  f -= least;
  uint32_t small;
  memcpy(&small, &f, 4);
  uint32_t u = (rest < 0x00800000 ? small : usual) | sign;
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
