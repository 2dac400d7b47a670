/* --- functions of one number ----------------------------------------------------------------- */

/* Without branches and calls, so that loops over them run by vectors; the exceptions say so. NaN
   stays NaN. Largest errors in units of the last place stand in tests/backends/c. */

INLINE bits bits_of(real x) {
  bits u;
  memcpy(&u, &x, sizeof u);
  return u;
}

INLINE real real_of(bits u) {
  real x;
  memcpy(&x, &u, sizeof x);
  return x;
}

#if REAL_IS_DOUBLE
#define MANTISSA 52
#define BIAS 1023
#define ROUNDER 6755399441055744.0
#define LOG2_HIGH 6.93147180369123816490e-01
#define LOG2_LOW 1.90821492927058770002e-10
#define BY_TYPE(single, twice) twice
#else
#define MANTISSA 23
#define BIAS 127
#define ROUNDER 12582912.0f
#define LOG2_HIGH 0.693359375f
#define LOG2_LOW -2.12194440e-4f
#define BY_TYPE(single, twice) single
#endif
#define NUMBER(x) ((real)(x))

INLINE real real_abs(real x) { return real_of(bits_of(x) & BY_TYPE(INT32_MAX, INT64_MAX)); }
INLINE real with_sign(real x, real sign) {
  return real_of(bits_of(x) | (bits_of(sign) & BY_TYPE(INT32_MIN, INT64_MIN)));
}
INLINE real real_max(real x, real y) { return x > y || x != x ? x : y; }
INLINE real real_min(real x, real y) { return x < y || x != x ? x : y; }
INLINE real real_sign(real x) { return x != x ? x : NUMBER((x > 0) - (x < 0)); }
INLINE real real_step(real x) { return NUMBER(0.5) + NUMBER(0.5) * real_sign(x); }
INLINE real real_relu(real x) { return real_max(x, 0); }
INLINE real real_sqrt(real x) { return BY_TYPE(__builtin_sqrtf, __builtin_sqrt)(x); }

INLINE real two_to(bits n) { /* 2^n for exponents of normal numbers */
  return real_of((bits)((BY_TYPE(uint32_t, uint64_t))(n + BIAS) << MANTISSA));
}

/* x = n log 2 + r with |r| ≤ log(2) / 2; returns r. */
INLINE real take_log2(real x, bits *n) {
  real shifted = x * NUMBER(1.44269504088896341) + ROUNDER; /* its low bits are the integer */
  *n = bits_of(shifted) - bits_of(ROUNDER);
  real whole = shifted - ROUNDER;
  return x - whole * LOG2_HIGH - whole * LOG2_LOW;
}

/* (e^r - 1 - r) / r² for |r| ≤ log(2) / 2. */
INLINE real exp_tail(real r) {
#if REAL_IS_DOUBLE
  real p = 1.6059043836821613e-10;
  p = p * r + 2.0876756987868100e-09;
  p = p * r + 2.5052108385441720e-08;
  p = p * r + 2.7557319223985893e-07;
  p = p * r + 2.7557319223985888e-06;
  p = p * r + 2.4801587301587302e-05;
  p = p * r + 1.9841269841269841e-04;
  p = p * r + 1.3888888888888889e-03;
  p = p * r + 8.3333333333333332e-03;
  p = p * r + 4.1666666666666664e-02;
  p = p * r + 1.6666666666666666e-01;
  return p * r + 0.5;
#else
  real p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  return p * r + 5.0000001201e-1f;
#endif
}

/* e^x = 2^n e^r; 2^n in two halves, as the ends are no normal numbers. */
INLINE real real_exp(real x) {
  bits n;
  real r = take_log2(x, &n), p = exp_tail(r) * (r * r) + r + 1;
  bits half = n >> 1;
  real e = p * two_to(half) * two_to(n - half);
  e = x > BY_TYPE(89.0f, 709.79) ? INFINITY : e;
  return x < BY_TYPE(-104.0f, -745.2) ? 0 : e;
}

/* e^x - 1 = 2 (2^(n-1) (e^r - 1) + 2^(n-1) - 1/2), with r itself added last of all that is small. */
INLINE real real_expm1(real x) {
  const real top = BY_TYPE(89.0f, 709.79), low = BY_TYPE(-18.0f, -38.0);
  real y = x > top ? top : x;
  y = y < low ? low : y;
  bits n;
  real r = take_log2(y, &n), half = two_to(n - 1);
  real e = 2 * (half * (exp_tail(r) * (r * r)) + (half * r + (half - NUMBER(0.5))));
  real tiny = BY_TYPE(2.9802322e-8f, 5.551115123125783e-17);
  return x != x || real_abs(x) < tiny ? x : e;
}

/* log(1 + f) of √½ ≤ 1 + f < √2, plus n log 2 and a correction. By s = f / (2 + f), as FreeBSD's
   msun does: log(1 + f) = f - s (f - R(s²)). */
INLINE real log_of_parts(real f, real n, real correction) {
  real s = f / (2 + f), z = s * s, w = z * z, half_square = NUMBER(0.5) * f * f;
#if REAL_IS_DOUBLE
  const real high = 6.93147180369123816490e-01, low = 1.90821492927058770002e-10;
  real even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 +
                                                   w * 1.531383769920937332e-01));
  real odd = z * (6.666666666666735130e-01 +
                  w * (2.857142874366239149e-01 +
                       w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
#else
  const real high = 6.9313812256e-01f, low = 9.0580006145e-06f;
  real even = w * (0.40000972152f + w * 0.24279078841f);
  real odd = z * (0.66666662693f + w * 0.28498786688f);
#endif
  real small = s * (half_square + even + odd) + (n * low + correction);
  return small - half_square + f + n * high;
}

/* A normal number = 2^n (1 + f) with √½ ≤ 1 + f < √2; returns f. */
INLINE real take_exponent(real x, real *n) {
  const bits root = BY_TYPE(0x3f3504f3, 0x3fe6a09e667f3bcd), one = bits_of(1);
  bits u = bits_of(x) + (one - root);
  *n = NUMBER((BY_TYPE(int32_t, int64_t))(u >> MANTISSA) - BIAS);
  return real_of((u & (((bits)1 << MANTISSA) - 1)) + root) - 1;
}

INLINE real real_log(real x) {
  const real least = BY_TYPE(1.17549435e-38f, 2.2250738585072014e-308);
  const real scale = BY_TYPE(8388608.0f, 4503599627370496.0); /* 2^MANTISSA */
  real n, f = take_exponent(x < least ? x * scale : x, &n);
  real y = log_of_parts(f, x < least ? n - MANTISSA : n, 0);
  y = x == INFINITY ? x : y;
  y = x == 0 ? -INFINITY : y;
  return x < 0 ? NAN : (x != x ? x : y);
}

/* log(1 + x) of -1 < x < ∞. What rounding takes from u = 1 + x comes back as a correction. */
INLINE real log1p_inside(real x) {
  real u = 1 + x, n, f = take_exponent(u, &n);
  real lost = n > 1 ? 1 - (u - x) : x - (u - 1);
  int is_near = x > NUMBER(-0.29) && x < NUMBER(0.41);
  return log_of_parts(is_near ? x : f, is_near ? 0 : n, is_near ? 0 : lost / u);
}

INLINE real real_log1p(real x) {
  real y = log1p_inside(x);
  const real tiny = BY_TYPE(5.9604645e-8f, 1.1102230246251565e-16);
  y = x == INFINITY || real_abs(x) < tiny ? x : y;
  y = x == -1 ? -INFINITY : y;
  return x < -1 ? NAN : (x != x ? x : y);
}

INLINE real real_sigmoid(real x) {
  real e = real_exp(-real_abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
INLINE real real_softplus(real x) {
  return real_max(x, 0) + log1p_inside(real_exp(-real_abs(x)));
}
INLINE real real_logsigmoid(real x) {
  return real_min(x, 0) - log1p_inside(real_exp(-real_abs(x)));
}
INLINE real real_silu(real x) { return x * real_sigmoid(x); }
INLINE real real_elu(real x) { return x > 0 ? x : real_expm1(real_min(x, 0)); }

INLINE real real_tanh(real x) {
  real e = real_expm1(-2 * real_abs(x));
  return x != x ? x : with_sign(-e / (2 + e), x);
}

/* (e^x - 1) / x, 1 at 0. */
INLINE real real_exprel(real x) {
  real e = real_expm1(x), y = e / (x == 0 ? 1 : x);
  return x == 0 ? 1 : (e == INFINITY ? e : y);
}

/* Its derivative, 1/2 at 0: Σ (k + 1) x^k / (k + 2)! near 0. */
INLINE real real_exprel_slope(real x) {
  int is_near = real_abs(x) < NUMBER(0.25);
  real far = is_near ? 1 : x, e = real_exp(far);
  real t = is_near ? x : 0, p = NUMBER(1.491208840606594e-10);
  p = p * t + NUMBER(1.9270852604185938e-09);
  p = p * t + NUMBER(2.2964432686654909e-08);
  p = p * t + NUMBER(2.505210838544172e-07);
  p = p * t + NUMBER(2.48015873015873e-06);
  p = p * t + NUMBER(2.2045855379188714e-05);
  p = p * t + NUMBER(0.0001736111111111111);
  p = p * t + NUMBER(0.0011904761904761906);
  p = p * t + NUMBER(0.006944444444444444);
  p = p * t + NUMBER(0.03333333333333333);
  p = p * t + NUMBER(0.125);
  p = p * t + NUMBER(0.3333333333333333);
  p = p * t + NUMBER(0.5);
  real slope = (e - real_expm1(far) / far) / far;
  return is_near ? p : (e == INFINITY ? e : slope);
}

#if REAL_IS_DOUBLE
/* By libm, one at a time. */
INLINE real real_erf(real x) { return erf(x); }
#else
/* A polynomial below 0.93, 1 - e^p(|x|) above. */
INLINE real real_erf(real x) {
  real t = real_abs(x), s = x * x;
  t = t > 10 ? 10 : t;
  real far = -1.72853470e-5f * t + 3.83197126e-4f;
  far = far * (t * t) + (-3.88396438e-3f * t + 2.42546219e-2f);
  far = far * t - 1.06777877e-1f;
  far = far * t - 6.34846687e-1f;
  far = far * t - 1.28717512e-1f;
  far = with_sign(1 - real_exp(far * t - t), x);
  real near = -5.96761703e-4f;
  near = near * s + 4.99119423e-3f;
  near = near * s - 2.67681349e-2f;
  near = near * s + 1.12819925e-1f;
  near = near * s - 3.76125336e-1f;
  near = near * s + 1.28379166e-1f;
  near = near * x + x;
  return x != x ? x : (t > 0.927734375f ? far : near);
}
#endif
INLINE real real_gelu(real x) {
  return NUMBER(0.5) * x * (1 + real_erf(x * NUMBER(0.70710678118654752)));
}

/* By libm, one at a time: angles may have any size. */
INLINE real real_sin(real x) { return BY_TYPE(sinf, sin)(x); }
INLINE real real_cos(real x) { return BY_TYPE(cosf, cos)(x); }
