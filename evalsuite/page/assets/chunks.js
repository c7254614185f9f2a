// Compressed chunks of text: in the page itself, or scripts beside it, since a page that was opened from a
// disk may load scripts and nothing else.

const FOLDER = "page";
const MOST_CHARACTERS = 150e6; // of texts kept unpacked; a large run is unpacked again when it is searched again

const waiting = new Map();
const unpacked = new Map();
let charactersKept = 0;

/** Called by each chunk that is loaded as a script. */
function keepChunk(name, packed) {
  waiting.get(name)?.(packed);
  waiting.delete(name);
}

/** The text of a chunk. */
async function chunkText(name) {
  if (unpacked.has(name)) return unpacked.get(name);
  const text = await unpack(await packedChunk(name));
  if (charactersKept + text.length <= MOST_CHARACTERS) {
    unpacked.set(name, text);
    charactersKept += text.length;
  }
  return text;
}

function packedChunk(name) {
  const inside = document.getElementById(name);
  if (inside) return Promise.resolve(inside.textContent);
  return new Promise((resolve, reject) => {
    waiting.set(name, resolve);
    const script = document.createElement("script");
    script.src = `${FOLDER}/${name}.js`;
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
