// What the page shows, in the fragment of its address: a shipped spec by its name, any other text
// compressed. The fragment is not sent to a server.

/**
 * @param {{text: string, tab: string, other: string}} shown
 * @param {{name: string, text: string}[]} specs the shipped ones.
 * @returns {Promise<string>} the fragment, with its `#`.
 */
export async function written(shown, specs) {
  const shipped = specs.find((s) => s.text === shown.text);
  const words = new URLSearchParams();
  if (shipped) words.set("spec", shipped.name);
  else words.set("text", await packed(shown.text));
  words.set("show", shown.tab);
  if (shown.other) words.set("with", shown.other);
  return `#${words}`;
}

/**
 * @param {string} fragment with its `#`, or empty.
 * @param {{name: string, text: string}[]} specs the shipped ones.
 * @returns {Promise<{text: ?string, tab: ?string, other: ?string}>} null for what is not said.
 */
export async function read(fragment, specs) {
  const words = new URLSearchParams(fragment.slice(1));
  const shipped = specs.find((s) => s.name === words.get("spec"));
  let text = shipped?.text ?? null;
  if (words.has("text")) {
    try {
      text = await unpacked(words.get("text"));
    } catch {
      text = null; // cut off on its way, or no text of this page
    }
  }
  return { text, tab: words.get("show"), other: words.get("with") };
}

const LONGEST = 64 * 1024; // bytes of a spec: the compiler refuses longer ones

async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const letters = btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(word) {
  const letters = atob(word.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > LONGEST) throw new RangeError("longer than a spec may be");
    text += decoder.decode(value, { stream: true });
  }
}
