import { connect as connectSocket, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Address } from "./why-not.ts";

/** How to ask. */
export interface Asking {
  readonly isTls: boolean;
  /** The version of IP; 0: either. */
  readonly family: number;
  readonly signal: AbortSignal;
  /** How long the server may be silent, in ms. */
  readonly patience: number;
}

/**
 * Sends these commands to a server, on a socket of its own and without any Redis library: a library
 * keeps trying where this program wants to know why not. Resolves with the last reply: a text, null
 * or an array.
 *
 * @throws the first error that Redis replies, whose name is "ReplyError", with the `command` that
 * was refused; the socket's error; the signal's reason
 */
export async function ask(
  { host, port }: Address,
  commands: readonly (readonly string[])[],
  { isTls, family, signal, patience }: Asking,
): Promise<unknown> {
  signal.throwIfAborted();
  const where = { host, port, family };
  const socket: Socket = isTls ? connectTls(where) : connectSocket(where);
  const end = (): void => void socket.destroy();
  signal.addEventListener("abort", end);
  try {
    return await new Promise((resolve, reject) => {
      let unread = Buffer.alloc(0);
      let count = 0;
      socket.setTimeout(patience, () => socket.destroy(new Error("Command timed out")));
      socket.on("error", reject);
      socket.on("close", () => reject(signal.aborted ? signal.reason : new Error("Connection is closed.")));
      socket.on("data", (data: Buffer) => {
        unread = Buffer.concat([unread, data]);
        try {
          for (let read = reply(unread, 0); read; read = reply(unread, 0)) {
            unread = unread.subarray(read.end);
            const { value } = read;
            const [name = ""] = commands[count++] ?? [];
            if (value instanceof Error) throw Object.assign(value, { command: { name: name.toLowerCase() } });
            if (count === commands.length) resolve(value);
          }
        } catch (error) {
          reject(error);
        }
      });
      for (const words of commands) socket.write(request(words));
    });
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}

const request = (words: readonly string[]): string =>
  [`*${words.length}`, ...words.flatMap((word) => [`$${Buffer.byteLength(word)}`, word]), ""].join("\r\n");

/** The reply that begins there, and where it ends; null: not all of it has arrived. */
function reply(data: Buffer, start: number): { readonly value: unknown; readonly end: number } | null {
  const eol = data.indexOf("\r\n", start);
  if (eol < 0) return null;
  const [type, line] = [data.toString("latin1", start, start + 1), data.toString("utf8", start + 1, eol)];
  const end = eol + 2;
  if (type === "+" || type === ":") return { value: line, end };
  if (type === "-") return { value: Object.assign(new Error(line), { name: "ReplyError" }), end };
  if (type === "$") {
    const length = Number(line);
    if (length < 0) return { value: null, end };
    if (data.length < end + length + 2) return null;
    return { value: data.toString("utf8", end, end + length), end: end + length + 2 };
  }
  if (type === "*") return items(data, end, Number(line));
  throw new Error("it does not speak the protocol of Redis");
}

function items(data: Buffer, start: number, count: number): ReturnType<typeof reply> {
  if (count < 0) return { value: null, end: start };
  const value: unknown[] = [];
  let end = start;
  for (let i = 0; i < count; i++) {
    const item = reply(data, end);
    if (!item) return null;
    value.push(item.value);
    end = item.end;
  }
  return { value, end };
}
