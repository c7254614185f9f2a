// Find what an answer shares with its target, word by word: the longest common subsequence.

const MOST_WORDS = 1500;

/** Splits a text into words, spaces and marks, in order. */
function tokens(text) {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** Compares two texts as lists of `{text, same}`; null if the texts are too long to compare. */
function wordDiff(before, after) {
  const [a, b] = [tokens(before), tokens(after)];
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return null;
  const [inA, inB] = commonWords(a.map((word) => word.toLowerCase()), b.map((word) => word.toLowerCase()));
  return { before: runs(a, inA), after: runs(b, inB) };
}

function commonWords(a, b) {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const [inA, inB] = [new Set(), new Set()];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      inA.add(i++);
      inB.add(j++);
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++;
    else j++;
  }
  return [inA, inB];
}

function runs(words, common) {
  const parts = [];
  words.forEach((text, place) => {
    const last = parts.at(-1);
    // A space belongs to the part before it.
    const same = last && !text.trim() ? last.same : common.has(place);
    if (last && last.same === same) last.text += text;
    else parts.push({ text, same });
  });
  return parts;
}

/** Marks the parts of a text that the other text lacks. */
function marked(parts, tag, meaning) {
  return parts.map(({ text, same }) => (same || !text.trim() ? text : el(tag, { title: meaning }, text)));
}
