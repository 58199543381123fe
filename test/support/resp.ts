const CR = 13;
const [ARRAY, PUSH, SET, MAP, ATTRIBUTE] = [..."*>~%|"].map((type) => type.charCodeAt(0));
const [STRING, VERBATIM, BLOB_ERROR] = [..."$=!"].map((type) => type.charCodeAt(0));

/** A RESP3 frame that the server sends unasked. */
export function isPush(frame: Buffer): boolean {
  return frame[0] === PUSH;
}

/**
 * Cuts a RESP2 or RESP3 byte stream into whole frames, wherever TCP has cut it into chunks. A frame
 * is a command, a reply or a push with all its nested parts, byte for byte as it came.
 */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  read(chunk: Buffer): Buffer[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Buffer[] = [];
    let start = 0;
    for (let end = frameEnd(bytes, start); end !== -1; end = frameEnd(bytes, start)) {
      frames.push(bytes.subarray(start, end));
      start = end;
    }
    this.#rest = bytes.subarray(start);
    return frames;
  }
}

/**
 * The words of a command; the name in lower case, the arguments decoded as latin1, so that binary arguments
 * survive as one character a byte.
 */
export function decodeCommand(frame: Buffer): string[] {
  const words = frame[0] === ARRAY ? bulkStrings(frame) : frame.toString("latin1").trim().split(/\s+/);
  return words.map((word, index) => (index === 0 ? word.toLowerCase() : word));
}

/** The first element of an array or a push if it is a string: "message", "subscribe", … */
export function firstString(frame: Buffer): string | undefined {
  const isList = frame[0] === ARRAY || frame[0] === PUSH;
  const at = lineEnd(frame, 0);
  return isList && frame[at] === STRING ? bulkString(frame, at).text : undefined;
}

function bulkStrings(frame: Buffer): string[] {
  const texts: string[] = [];
  for (let at = lineEnd(frame, 0); at < frame.length; ) {
    const { text, end } = bulkString(frame, at);
    texts.push(text);
    at = end;
  }
  return texts;
}

function bulkString(frame: Buffer, at: number): { text: string; end: number } {
  const start = lineEnd(frame, at);
  const end = start + count(frame, at);
  return { text: frame.toString("latin1", start, end), end: end + 2 };
}

/** The end of the frame that begins at `at`; -1 if not all of it has come yet. */
function frameEnd(bytes: Buffer, at: number): number {
  const body = lineEnd(bytes, at);
  if (body === -1) return -1;
  switch (bytes[at]) {
    case STRING:
    case VERBATIM:
    case BLOB_ERROR: {
      const length = count(bytes, at);
      const end = length < 0 ? body : body + length + 2;
      return end > bytes.length ? -1 : end;
    }
    case ARRAY:
    case PUSH:
    case SET:
      return framesEnd(bytes, body, count(bytes, at));
    case MAP:
      return framesEnd(bytes, body, 2 * count(bytes, at));
    case ATTRIBUTE: // precedes the reply that it belongs to
      return framesEnd(bytes, body, 2 * count(bytes, at) + 1);
    default: // everything else is one line, including an inline command
      return body;
  }
}

function framesEnd(bytes: Buffer, start: number, frames: number): number {
  let end = start;
  for (let left = frames; left > 0 && end !== -1; left--) end = frameEnd(bytes, end);
  return end;
}

/** The number in a header such as `$12`; -1 is RESP2's null. */
function count(bytes: Buffer, at: number): number {
  return Number(bytes.toString("latin1", at + 1, bytes.indexOf(CR, at)));
}

function lineEnd(bytes: Buffer, at: number): number {
  const end = bytes.indexOf("\r\n", at);
  return end === -1 ? -1 : end + 2;
}
