// The whole state in the fragment of an address, which no browser sends to a server.
const VERSION = "1";
const LONGEST = 100_000; // characters: what chats and mails still carry
const MOST = 8 << 20; // bytes that a link may unpack to

const packed = (stream) => new Response(stream).arrayBuffer();

export async function written(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const small = new Uint8Array(await packed(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"))));
  let text = "";
  for (const byte of small) text += String.fromCharCode(byte);
  const fragment = VERSION + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return fragment.length > LONGEST ? null : fragment;
}

// The state of a fragment; throws a sentence.
export async function read(fragment) {
  if (fragment[0] !== VERSION) throw new Error("the link is of another version of the playground");
  let bytes;
  try {
    const text = atob(fragment.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    bytes = Uint8Array.from(text, (one) => one.charCodeAt(0));
  } catch {
    throw new Error("the link is cut off or damaged");
  }
  const parts = [];
  let size = 0;
  try {
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      size += value.length;
      if (size > MOST) break;
      parts.push(value);
    }
    if (size > MOST) await reader.cancel();
  } catch {
    throw new Error("the link is cut off or damaged");
  }
  if (size > MOST) throw new Error("the link unpacks to more than 8 MiB");
  try {
    const { policy, before, cluster } = JSON.parse(await new Blob(parts).text());
    return { policy: String(policy ?? ""), before: String(before ?? ""), cluster: String(cluster ?? "") };
  } catch {
    throw new Error("the link is cut off or damaged");
  }
}
