// What arrives on a client's own channel. Words are separated by single spaces; a lock's key comes last, because names
// may contain spaces.

import { decodeLabel } from "../label.ts";
import { connectionLua } from "./client-lua.generated.ts";
import type { Commands } from "./commands.ts";
import { decodeShare } from "./share-message.ts";

export type Message =
  | {
      readonly is: "grant";
      readonly token: number;
      /** The server's time in µs when the TTL was set, and the TTL in ms. */
      readonly at: number;
      readonly ttl: number;
      /** Does somebody else wait? */
      readonly waits: boolean;
      /** Of a counted resource: how many. */
      readonly units?: number;
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
    }
  /** Somebody wants the lock of this hold. */
  | {
      readonly is: "recall";
      readonly hold: string;
      /** Of a caller that does not wait, and to which "busy" is answered where somebody is inside; null: a waiter. */
      readonly nonce: string | null;
      /** It wants to know only whether somebody is inside. */
      readonly isQuestion: boolean;
      readonly key: string;
    }
  /** The answer to a recall with this nonce. */
  | { readonly is: "busy" | "idle"; readonly nonce: string; readonly key: string };

/** Null: not a message of this protocol; it is ignored. */
export function decodeMessage(text: string): Message | null {
  if (text.startsWith("grant ")) return decodeGrant(text);
  if (text.startsWith("share ")) return decodeShared(text);
  if (text.startsWith("revoked ")) return decodeRevoked(text);
  if (text.startsWith("recall ")) return decodeRecall(text);
  if (text.startsWith("busy ") || text.startsWith("idle ")) return decodeAnswer(text);
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

/**
 * `grant <token> <server µs> <TTL ms> <waits 0/1> <hold> <lock key>`. Cut by hand: this is what stands between an unlock and the next
 * holder. A number that no script would write makes it no message.
 */
function decodeGrant(text: string): Message | null {
  const token = text.indexOf(" ") + 1;
  const at = text.indexOf(" ", token) + 1;
  const ttl = text.indexOf(" ", at) + 1;
  const waits = text.indexOf(" ", ttl) + 1;
  const hold = text.indexOf(" ", waits) + 1;
  const key = text.indexOf(" ", hold) + 1;
  if (at === 0 || ttl === 0 || waits === 0 || hold !== waits + 2 || key === 0 || key === text.length)
    return null;
  const grant = {
    token: Number(text.slice(token, at - 1)),
    at: Number(text.slice(at, ttl - 1)),
    ttl: Number(text.slice(ttl, waits - 1)),
  };
  if (!isCount(grant.token) || !isCount(grant.at) || !isCount(grant.ttl)) return null;
  return {
    is: "grant",
    ...grant,
    waits: text[waits] === "1",
    hold: text.slice(hold, key - 1),
    key: text.slice(key),
  };
}

/** Units of a counted resource are granted as a lock is. */
function decodeShared(text: string): Message | null {
  const share = decodeShare(text);
  return share && { is: "grant", ...share };
}

const isCount = (number: number): boolean => Number.isSafeInteger(number) && number > 0;

/** `recall <hold> <- or [?]nonce> <lock key>` */
function decodeRecall(text: string): Message | null {
  const [, hold, mark, word, key] = /^recall ([^ ]+) (\??)([^ ?]+) (.+)$/s.exec(text) ?? [];
  if (hold === undefined || word === undefined || key === undefined) return null;
  return { is: "recall", hold, nonce: word === "-" ? null : word, isQuestion: mark === "?", key };
}

/** `busy <nonce> <lock key>`, `idle <nonce> <lock key>` */
function decodeAnswer(text: string): Message | null {
  const [, nonce, key] = /^.... ([^ ]+) (.+)$/s.exec(text) ?? [];
  if (nonce === undefined || key === undefined) return null;
  return { is: text.startsWith("busy") ? "busy" : "idle", nonce, key };
}

/** A client's id, and what is drawn for one question: it is no secret, and nothing is granted by it. */
const NONCE = /^([\w.%-]*\/?[\w.-]*:\d+:[0-9a-f]{16})\.[0-9a-f]{16}$/;

/** The client that has asked; null: this is no nonce, and nobody is answered. */
export const askerOf = (nonce: string): string | null => NONCE.exec(nonce)?.[1] ?? null;

/** What a client says to itself to learn whether it is heard. `nonce`: of this one probe. */
export function probeMessage(nonce: string): string {
  return `probe ${nonce}`;
}

/** Publishes to a channel from a script and returns the number of receivers. Rejects when PUBLISH is refused. */
export function publishProbe(commands: Commands, channel: string, message: string): Promise<number> {
  // In Cluster a key leads the script to the channel's node.
  const keys = commands.isCluster ? [commands.keys.clockOfChannel(channel)] : [];
  return commands.run(connectionLua.probe, keys, [channel, message], Number);
}
