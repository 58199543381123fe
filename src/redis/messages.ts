// What arrives on a client's own channel. Words are separated by single spaces; a lock's key comes last, because names
// may contain spaces.

import { LABEL_BYTES_MAX } from "../defaults.ts";
import { connectionLua } from "./lua.generated.ts";
import type { ScriptRunner } from "./script-runner.ts";

export type Message =
  | {
      readonly is: "grant";
      readonly token: number;
      /** The server's time in µs when the TTL was set, and the TTL in ms. */
      readonly at: number;
      readonly ttl: number;
      readonly hold: string;
      /** The lock's full key, prefix included. */
      readonly key: string;
    }
  | {
      readonly is: "revoked";
      readonly hold: string;
      readonly key: string;
      /** The label that `forceUnlock` was given; null: none. */
      readonly by: string | null;
    };

/** Null: not a message of this protocol; it is ignored. */
export function decodeMessage(text: string): Message | null {
  if (text.startsWith("grant ")) return decodeGrant(text);
  if (text.startsWith("revoked ")) return decodeRevoked(text);
  return null;
}

/** `revoked <hold> <lock key> [label]`. A lock's key ends with the only closing brace behind the prefix; a label has none. */
function decodeRevoked(text: string): Message {
  const hold = text.indexOf(" ") + 1;
  const key = text.indexOf(" ", hold) + 1;
  const end = text.lastIndexOf("}") + 1;
  const label = text.slice(end + 1);
  return {
    is: "revoked",
    hold: text.slice(hold, key - 1),
    key: text.slice(key, end),
    by: decodeLabel(label),
  };
}

/** A label as one word: without spaces, and without braces. */
export const encodeLabel = (label: string | null): string => encodeURIComponent(label ?? "");

function decodeLabel(word: string): string | null {
  try {
    return word === "" ? null : decodeURIComponent(word).slice(0, LABEL_BYTES_MAX);
  } catch {
    return null;
  }
}

/**
 * `grant <token> <server µs> <TTL ms> <wanted 0/1> <hold> <lock key>`. Cut by hand: this is what stands between an unlock and the next
 * holder. A number that no script would write makes it no message.
 */
function decodeGrant(text: string): Message | null {
  const token = text.indexOf(" ") + 1;
  const at = text.indexOf(" ", token) + 1;
  const ttl = text.indexOf(" ", at) + 1;
  const wanted = text.indexOf(" ", ttl) + 1;
  const hold = text.indexOf(" ", wanted) + 1;
  const key = text.indexOf(" ", hold) + 1;
  if (at === 0 || ttl === 0 || wanted === 0 || hold !== wanted + 2 || key === 0 || key === text.length)
    return null;
  const grant = {
    token: Number(text.slice(token, at - 1)),
    at: Number(text.slice(at, ttl - 1)),
    ttl: Number(text.slice(ttl, wanted - 1)),
  };
  if (!isCount(grant.token) || !isCount(grant.at) || !isCount(grant.ttl)) return null;
  return { is: "grant", ...grant, hold: text.slice(hold, key - 1), key: text.slice(key) };
}

const isCount = (number: number): boolean => Number.isSafeInteger(number) && number > 0;

/** What a client says to itself to learn whether it is heard. `nonce`: of this one probe. */
export function probeMessage(nonce: string): string {
  return `probe ${nonce}`;
}

/** Publishes to a channel from a script and returns the number of receivers. Rejects when PUBLISH is refused. */
export function publishProbe(commands: ScriptRunner, channel: string, message: string): Promise<number> {
  // In Cluster a key leads the script to the channel's node.
  const keys = commands.isCluster ? [commands.keys.clockOfChannel(channel)] : [];
  return commands.run(connectionLua.probe, keys, [channel, message], Number);
}
