// The interval of a mean within declared bounds, by betting: evalsuite/stats/betting.py has the method and its
// source. Values are bet on in the order that Python's random.Random(0).sample draws, so that the page comes to
// the report's own bounds; a test holds it against them.

const TRUNCATION = 0.75; // the share of the capital that a bet may put at risk
const BET_HALVINGS = 30;
const BET_TARGET = Math.log(2 / 0.05);

/** The hedged betting interval of the mean of values within bounds; cases of a cluster are bet on together. */
function bettingInterval(values, clusters, [low, high]) {
  const width = high - low;
  const { totals, sizes } = clusterTotals(values.map((value) => (value - low) / width), clusters);
  const largest = sizes.reduce((most, size) => Math.max(most, size), 0);
  const order = drawnOrder(totals.length);
  const shares = order.map((place) => sizes[place] / largest);
  const means = order.map((place) => totals[place] / sizes[place]);
  const centre = exactSum(totals) / exactSum(sizes);
  const below = largestExcluded(means, shares, centre);
  const above = 1 - largestExcluded(means.map((mean) => 1 - mean), shares, 1 - centre);
  return [low + width * below, low + width * above];
}

/** The largest mean below the observed one that is excluded; the wealth of a gambler against it falls as it grows. */
function largestExcluded(means, shares, centre) {
  const bets = betsOf(means, shares);
  let [left, right] = [0, centre];
  for (let step = 0; step < BET_HALVINGS; step++) {
    const middle = (left + right) / 2;
    if (middle > 0 && wealth(means, shares, bets, middle) >= BET_TARGET) left = middle;
    else right = middle;
  }
  return left;
}

/** The greatest logarithm of the capital, over all bets against a supposed mean. */
function wealth(means, shares, bets, supposed) {
  const bound = TRUNCATION / supposed;
  let [capital, most] = [0, -Infinity];
  for (let place = 0; place < means.length; place++) {
    capital += Math.log1p(Math.min(bets[place], bound) * shares[place] * (means[place] - supposed));
    if (capital > most) most = capital;
  }
  return most;
}

/** sqrt(2 log(2 / alpha) / (n v)), with v the variance of the values before, regularised by one of 1/4. */
function betsOf(means, shares) {
  const bets = [];
  let [drawn, weight, squares, variance] = [0, 0, 0, 0.25];
  for (let place = 0; place < means.length; place++) {
    bets.push(Math.sqrt((2 * BET_TARGET) / (means.length * variance)));
    drawn += shares[place] * means[place];
    weight += shares[place];
    squares += (shares[place] * (means[place] - (0.5 + drawn) / (1 + weight))) ** 2;
    variance = (0.25 + squares) / (place + 2);
  }
  return bets;
}

const orders = new Map();

/** What `random.Random(0).sample(range(count), count)` gives. */
function drawnOrder(count) {
  if (!orders.has(count)) orders.set(count, drawOrder(count));
  return orders.get(count);
}

function drawOrder(count) {
  const next = mersenneTwister();
  const pool = Array.from({ length: count }, (_, place) => place);
  return pool.map((_, place) => {
    const left = pool.length - place;
    const drawn = drawBelow(left, next);
    const chosen = pool[drawn];
    pool[drawn] = pool[left - 1];
    return chosen;
  });
}

/** A number below a bound: as many bits as the bound has, until they come to less. */
function drawBelow(bound, next) {
  const bits = 32 - Math.clz32(bound);
  let drawn;
  do drawn = next() >>> (32 - bits);
  while (drawn >= bound);
  return drawn;
}

/** MT19937 as Python seeds it with 0 (Matsumoto and Nishimura, ACM TOMACS 8, 1998; init_by_array of 2002). */
function mersenneTwister() {
  const words = seededWords();
  let place = 624;
  return () => {
    if (place === 624) place = regenerate(words);
    let word = words[place++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  };
}

function seededWords() {
  const words = new Uint32Array(624);
  const mixed = (place) => words[place - 1] ^ (words[place - 1] >>> 30);
  words[0] = 19650218;
  for (let place = 1; place < 624; place++) words[place] = Math.imul(1812433253, mixed(place)) + place;
  let at = 1;
  const advance = () => {
    if (++at < 624) return;
    words[0] = words[623];
    at = 1;
  };
  // The key is a single word, 0, so that nothing but the place of the word is added.
  for (let step = 0; step < 624; step++, advance()) words[at] = words[at] ^ Math.imul(mixed(at), 1664525);
  for (let step = 0; step < 623; step++, advance()) words[at] = (words[at] ^ Math.imul(mixed(at), 1566083941)) - at;
  words[0] = 0x80000000;
  return words;
}

function regenerate(words) {
  for (let place = 0; place < 624; place++) {
    const joined = (words[place] & 0x80000000) | (words[(place + 1) % 624] & 0x7fffffff);
    words[place] = words[(place + 397) % 624] ^ (joined >>> 1) ^ (joined & 1 ? 0x9908b0df : 0);
  }
  return 0;
}
