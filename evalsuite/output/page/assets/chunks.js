// Read compressed chunks of text, which are in the page itself or in scripts beside the page, because a page that was
// opened from a disk may load only scripts.

const FOLDER = "page";
const MOST_BYTES = 140e6; // of records kept unpacked; a larger run is unpacked again for each search
const LAST_CHUNKS = 8; // kept of a larger run, for walking from case to case

const waiting = new Map();
const unpacked = new Map();

/** Called by each chunk that is loaded as a script. */
function keepChunk(name, packed) {
  waiting.get(name)?.(packed);
  waiting.delete(name);
}

function staysUnpacked() {
  return OVERVIEW.bytes <= MOST_BYTES;
}

/** Reads the text of a chunk of records. */
async function chunkText(name) {
  if (!unpacked.has(name)) {
    const text = await textOf(name);
    if (!staysUnpacked() && unpacked.size >= LAST_CHUNKS) unpacked.delete(unpacked.keys().next().value);
    unpacked.set(name, text);
  }
  return unpacked.get(name);
}

async function textOf(name) {
  return unpack(await packedChunk(name));
}

function packedChunk(name, fresh = "") {
  const inside = document.getElementById(name);
  if (inside) return Promise.resolve(inside.textContent);
  return new Promise((resolve, reject) => {
    waiting.set(name, resolve);
    const script = document.createElement("script");
    script.src = `${FOLDER}/${name}.js${fresh}`;
    script.onload = () => script.remove();
    script.onerror = () => {
      script.remove();
      reject(new Error(`The folder "${FOLDER}" beside this page holds the cases; ${name}.js is not there.`));
    };
    document.head.append(script);
  });
}

async function unpack(packed) {
  const bytes = fromBase64(packed.trim());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place++) bytes[place] = binary.charCodeAt(place);
  return bytes;
}
