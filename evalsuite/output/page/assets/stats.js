// Means and intervals, recomputed for whatever is filtered. The formulas and their sources are in
// evalsuite/stats (intervals.py, betting.py, clustering.py, paired.py) and evalsuite/results/tally.py; a test holds
// these functions against those.

const Z = 1.959963984540054; // of the normal distribution, at 97.5%
const FEW = 30; // successes or failures below which a share's interval is exact
const ROUNDING = 1e-12; // relative spread below which values are equal but for floating-point noise

/** The exactly rounded sum (Shewchuk, Discrete & Computational Geometry 18, 1997), as Python's math.fsum. */
function exactSum(values) {
  const partials = [];
  for (let x of values) {
    let kept = 0;
    for (let y of partials) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low) partials[kept++] = low;
      x = high;
    }
    partials.length = kept;
    partials.push(x);
  }
  return partials.reduceRight((sum, part) => sum + part, 0);
}

/** Wilson's score interval of a share. */
function wilsonInterval(successes, n) {
  const share = successes / n;
  const weight = (Z * Z) / n;
  const centre = (share + weight / 2) / (1 + weight);
  const reach = Math.sqrt(weight * share * (1 - share) + (weight * weight) / 4) / (1 + weight);
  return [successes === 0 ? 0 : centre - reach, successes === n ? 1 : centre + reach];
}

/** Clopper and Pearson's exact interval of a share. */
function exactInterval(successes, n) {
  const failures = n - successes;
  const low = successes === 0 ? 0 : shareAt(0.025, successes, failures + 1);
  return [low, failures === 0 ? 1 : shareAt(0.975, successes + 1, failures)];
}

/** Where the beta distribution with these parameters reaches a level. */
function shareAt(level, a, b) {
  let low = 0;
  let high = 1;
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (incompleteBeta(a, b, middle) < level) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Wilson's interval, or the exact one where successes or failures are few. */
function countInterval(successes, n) {
  const few = Math.min(successes, n - successes) < FEW;
  return few ? exactInterval(successes, n) : wilsonInterval(successes, n);
}

/** Sum and number of the values of each cluster, in order of first appearance. */
function clusterTotals(values, clusters) {
  const groups = new Map();
  values.forEach((value, place) => {
    const key = clusters ? clusters[place] : place;
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  });
  const totals = [];
  const sizes = [];
  for (const group of groups.values()) {
    totals.push(group.reduce((sum, value) => sum + value, 0));
    sizes.push(group.length);
  }
  return { totals, sizes };
}

/** The mean with its cluster-robust standard error, CR2 with Satterthwaite's degrees of freedom. */
function clusteredMean(values, clusters) {
  const { totals, sizes } = clusterTotals(values, clusters);
  const count = totals.length;
  const n = values.length;
  const mean = exactSum(totals) / n;
  if (count === 1) return { mean, error: Infinity, clusters: 1, freedom: 0 };
  const shares = sizes.map((size) => size / n);
  const residuals = totals.map((total, place) => total - sizes[place] * mean);
  const largest = (list) => list.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (largest(residuals) <= ROUNDING * largest(totals)) return { mean, error: 0, clusters: count, freedom: count - 1 };
  const squares = exactSum(residuals.map((residual, place) => residual ** 2 / (1 - shares[place])));
  return { mean, error: Math.sqrt(squares) / n, clusters: count, freedom: satterthwaiteFreedom(shares) };
}

/** Degrees of freedom of CR2's variance of a mean, given each cluster's share of the values. */
function satterthwaiteFreedom(shares) {
  const extreme = (better) => shares.reduce((one, two) => better(one, two));
  if (extreme(Math.max) - extreme(Math.min) <= ROUNDING) return shares.length - 1;
  const total = (list) => list.reduce((sum, value) => sum + value, 0);
  const adjusted = shares.map((share) => share ** 2 / (1 - share));
  const squares = total(adjusted.map((value) => value ** 2));
  return 1 / (total(shares.map((share) => share ** 2)) + total(adjusted) ** 2 - squares);
}

/** The interval of a share whose cases come in clusters, with the effective number of cases. */
function shareInterval(clustered, n) {
  let effective = clustered.clusters;
  if (clustered.mean > 0 && clustered.mean < 1 && clustered.error > 0) {
    const variance = clustered.mean * (1 - clustered.mean);
    effective = variance / Math.max(clustered.error ** 2, variance / n);
  }
  effective *= (Z / studentQuantile(0.975, clustered.freedom)) ** 2;
  return countInterval(clustered.mean * effective, effective);
}

/**
 * The mean of a metric with its interval, as the report gives it: a share's for 0/1 scores, the betting interval
 * for scores within declared bounds, else the t interval.
 */
function estimate(values, clusters, bounds = null) {
  const n = values.length;
  if (!n) return null;
  const value = exactSum(values) / n;
  const isShare = values.every((score) => score === 0 || score === 1);
  const apart = new Set(clusters).size;
  if (isShare && apart === n) return interval(value, countInterval(exactSum(values), n), n);
  if (apart < 2) return { value, low: null, high: null, n };
  const clustered = clusteredMean(values, clusters);
  if (isShare) return interval(value, shareInterval(clustered, n), n);
  if (bounds && values.every((score) => score >= bounds[0] && score <= bounds[1])) return interval(value, bettingInterval(values, clusters, bounds), n);
  const reach = clustered.error ? studentQuantile(0.975, clustered.freedom) * clustered.error : 0;
  const noise = ROUNDING * values.reduce((most, score) => Math.max(most, Math.abs(score)), 0);
  // Nothing varied, which does not show that nothing could.
  if (2 * reach <= noise) return { value, low: null, high: null, n };
  return interval(value, [clustered.mean - reach, clustered.mean + reach], n);
}

function interval(value, [low, high], n) {
  return { value, low, high, n };
}

/**
 * The paired difference, candidate minus baseline, with its interval and two-sided p-value. With a scale, the largest
 * difference that two scores can have, the t interval stays within it, and outcomes 0 and 1 without clusters have
 * Tango's interval.
 */
function pairedDifference(before, after, clusters, scale = null) {
  const n = before.length;
  if (!n) return null;
  const clustered = clusteredMean(after.map((value, place) => value - before[place]), clusters);
  const p = clustered.error === Infinity ? 1 : pvalue(clustered);
  const binary = [...before, ...after].every((value) => value === 0 || value === 1);
  if (scale === 1 && !clusters && binary) {
    const lost = before.filter((value, place) => value > after[place]).length;
    const won = before.filter((value, place) => value < after[place]).length;
    const [low, high] = tangoInterval(lost, won, n);
    return { value: clustered.mean, low, high, n, p };
  }
  if (clustered.error === Infinity) {
    return { value: clustered.mean, low: scale === null ? null : -scale, high: scale, n, p };
  }
  const reach = clustered.error ? studentQuantile(0.975, clustered.freedom) * clustered.error : 0;
  const most = scale ?? Infinity;
  const [low, high] = [Math.max(-most, clustered.mean - reach), Math.min(most, clustered.mean + reach)];
  return { value: clustered.mean, low, high, n, p };
}

/** Tango's score interval of the difference of two shares on the same cases (Statistics in Medicine 17, 1998). */
function tangoInterval(lost, won, n) {
  const centre = (won - lost) / n;
  return [
    whereItEnds((difference) => tangoZ(lost, won, n, difference) > Z, -1, centre),
    whereItEnds((difference) => tangoZ(lost, won, n, difference) >= -Z, centre, 1),
  ];
}

function tangoZ(lost, won, n, difference) {
  const b = (2 * n - won + lost) * difference - (lost + won);
  const c = -lost * difference * (1 - difference);
  const loss = (Math.sqrt(Math.max(b * b - 8 * n * c, 0)) - b) / (4 * n);
  const variance = n * (2 * loss + difference * (1 - difference));
  const distance = won - lost - n * difference;
  if (variance <= 0) return distance ? Math.sign(distance) * Infinity : 0;
  return distance / Math.sqrt(variance);
}

/** Where a condition that holds to the left ceases to hold. */
function whereItEnds(holds, left, right) {
  if (holds(right)) return right;
  for (let step = 0; step < 60; step++) {
    const middle = (left + right) / 2;
    if (holds(middle)) left = middle;
    else right = middle;
  }
  return left;
}

function pvalue({ mean, error, clusters, freedom }) {
  if (mean === 0) return 1;
  // Where all clusters say the same, the exact sign test takes the place of an infinite t.
  if (error === 0) return Math.min(1, 2 * 2 ** -clusters);
  return Math.min(1, 2 * studentTail(Math.abs(mean) / error, freedom));
}

/** McNemar's exact test, two-sided, of 0/1 scores. */
function mcnemar(before, after) {
  const lost = before.filter((value, place) => value > after[place]).length;
  const won = before.filter((value, place) => value < after[place]).length;
  if (lost === won) return 1;
  const few = Math.min(lost, won);
  return Math.min(1, 2 * incompleteBeta(lost + won - few, few + 1, 0.5));
}

/** Holm's correction of p-values for being several, in their order. */
function holm(pvalues) {
  const order = pvalues.map((_, place) => place).sort((one, two) => pvalues[one] - pvalues[two]);
  const corrected = [];
  let least = 0;
  order.forEach((place, rank) => {
    least = Math.max(least, Math.min(1, (pvalues.length - rank) * pvalues[place]));
    corrected[place] = least;
  });
  return corrected;
}

/** The upper tail of Student's t distribution at t >= 0. */
function studentTail(t, freedom) {
  return incompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
}

const quantiles = new Map();

/** The quantile of Student's t distribution at a level above one half. */
function studentQuantile(level, freedom) {
  const key = `${level}/${freedom}`;
  if (!quantiles.has(key)) quantiles.set(key, solveQuantile(1 - level, freedom));
  return quantiles.get(key);
}

function solveQuantile(tail, freedom) {
  let low = 0;
  let high = 1;
  while (studentTail(high, freedom) > tail) high *= 2;
  for (let step = 0; step < 200 && high - low > 1e-15 * high; step++) {
    const middle = (low + high) / 2;
    if (studentTail(middle, freedom) > tail) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** The regularised incomplete beta function, by its continued fraction (Lentz; DLMF 8.17.22). */
function incompleteBeta(a, b, x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(b, a, 1 - x);
  const front = Math.exp(logBetaFront(a, b, x)) / a;
  let c = 1;
  let d = 1 / guarded(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 1000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guarded(1 + even * d);
    c = guarded(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guarded(1 + odd * d);
    c = guarded(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return front * fraction;
}

function guarded(value) {
  return Math.abs(value) < 1e-300 ? 1e-300 : value;
}

function logBetaFront(a, b, x) {
  return a * Math.log(x) + b * Math.log1p(-x) - logBeta(a, b);
}

/** log B(a, b); for large a the difference of two large logarithms is taken from Stirling's series. */
function logBeta(a, b) {
  if (a < b) return logBeta(b, a);
  if (a < 20) return logGamma(a) + logGamma(b) - logGamma(a + b);
  const correction = stirling(a) - stirling(a + b);
  return logGamma(b) + correction + b - b * Math.log(a + b) + (a - 0.5) * Math.log1p(-b / (a + b));
}

/** The error of Stirling's formula, for x >= 10 (DLMF 5.11.1). */
function stirling(x) {
  const y = 1 / (x * x);
  return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x;
}

function logGamma(x) {
  let shift = 0;
  while (x < 20) shift -= Math.log(x++);
  return shift + (x - 0.5) * Math.log(x) - x + 0.9189385332046727 + stirling(x);
}
