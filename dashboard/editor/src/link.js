// What was entered into a form, in the fragment of an address, which browsers do not send to servers.

const PREFIX = "#request=";
// Longer addresses are cut by programs that pass them on.
const MAX_CHARACTERS = 30_000;
// What a fragment may be decompressed to. A browser would run out of memory before the compressed text is long.
const MAX_BYTES = 8 * 1024 * 1024;

async function bytesOf(stream) {
  const parts = [];
  let length = 0;
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MAX_BYTES) {
      reader.cancel();
      throw new RangeError("The link holds too much.");
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// The fragment of these values, which are strings by name.
export async function asLink(values) {
  const text = new Blob([JSON.stringify(values)]);
  const bytes = await bytesOf(text.stream().pipeThrough(new CompressionStream("deflate-raw")));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  const encoded = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  if (encoded.length > MAX_CHARACTERS) {
    throw new RangeError("The request is too long for a link. Use “Download request.json”.");
  }
  return PREFIX + encoded;
}

// The values of a fragment; null if it has none.
export async function fromLink(fragment) {
  if (!fragment.startsWith(PREFIX)) return null;
  try {
    const binary = atob(fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const values = JSON.parse(new TextDecoder().decode(await bytesOf(stream)));
    return typeof values === "object" && !Array.isArray(values) ? values : null;
  } catch {
    return null;
  }
}
