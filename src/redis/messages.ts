// Messages on a client's own channel. Words are separated by single spaces; a lock's key comes
// last, because names may contain spaces.

import { decodeLabel } from "../api/label.ts";
import { connectionLua } from "./client-lua.generated.ts";
import type { Commands } from "./commands.ts";
import { FIRST_TOKEN } from "./fields.ts";
import { Words } from "./words.ts";

export type Message =
  | {
      readonly is: "grant";
      readonly token: number;
      /** The server's time in µs when the TTL was set, and the TTL in ms. */
      readonly at: number;
      readonly ttl: number;
      /** Does another caller wait? */
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
      /** The label given to `forceUnlock`; null: none. */
      readonly by: string | null;
    }
  /** Another client wants the lock of this hold. */
  | {
      readonly is: "recall";
      readonly hold: string;
      /**
       * Set by a caller that does not wait, and that gets the answer "busy" if the lock is in use;
       * null: a waiter.
       */
      readonly nonce: string | null;
      /** It only asks whether the lock is in use. */
      readonly isQuestion: boolean;
      readonly key: string;
    }
  /** A result is there: the hold is over. */
  | { readonly is: "ready"; readonly hold: string; readonly key: string }
  /** The answer to a recall with this nonce. */
  | { readonly is: "busy" | "idle"; readonly nonce: string; readonly key: string };

/** Null: not a message of this protocol; it is ignored. */
export function decodeMessage(text: string): Message | null {
  const end = text.indexOf(" ");
  const words = new Words(text, end + 1);
  const message = readMessage(text.slice(0, end), words);
  return words.isWhole ? message : null;
}

/** Reads words in order. The grant's hold decides whether it was asked for. */
function readMessage(is: string, words: Words): Message | null {
  switch (is) {
    case "grant":
      return {
        is,
        token: words.count(FIRST_TOKEN),
        at: words.count(),
        ttl: words.count(),
        waits: words.flag(),
        hold: words.word(),
        key: words.rest(),
      };
    // Of a counted resource.
    case "share":
      return {
        is: "grant",
        token: words.count(FIRST_TOKEN),
        at: words.count(),
        ttl: words.count(),
        waits: words.flag(),
        units: words.count(),
        hold: words.word(),
        key: words.rest(),
      };
    case "revoked": {
      const [hold, rest] = [words.word(), words.rest()];
      // A lock's key ends with the only closing brace after the prefix; a label has none.
      const end = rest.lastIndexOf("}") + 1;
      return { is, hold, key: rest.slice(0, end), by: decodeLabel(rest.slice(end + 1)) };
    }
    case "recall": {
      const [hold, asked, key] = [words.word(), words.word(), words.rest()];
      const isQuestion = asked.startsWith("?");
      const nonce = isQuestion ? asked.slice(1) : asked;
      return nonce === "" ? null : { is, hold, nonce: nonce === "-" ? null : nonce, isQuestion, key };
    }
    case "ready":
      return { is, hold: words.word(), key: words.rest() };
    case "busy":
    case "idle":
      return { is, nonce: words.word(), key: words.rest() };
  }
  return null;
}

/** A client's id, and a number drawn for one question. It is no secret, and grants nothing. */
const NONCE = /^([\w.%-]*\/?[\w.-]*:\d+:[0-9a-f]{16})\.[0-9a-f]{16}$/;

/** The client that asked; null: this is no nonce, and gets no answer. */
export const askerOf = (nonce: string): string | null => NONCE.exec(nonce)?.[1] ?? null;

/**
 * What a client sends to itself to learn whether it receives messages. `nonce`: of this one probe.
 */
export function probeMessage(nonce: string): string {
  return `probe ${nonce}`;
}

/**
 * Publishes to a channel from a script and returns the number of receivers. Rejects when PUBLISH is
 * refused.
 */
export async function publishProbe(commands: Commands, channel: string, message: string): Promise<number> {
  // In Cluster the key routes the script to the channel's node.
  const keys = commands.isCluster ? [commands.keys.clockOfChannel(channel)] : [];
  return (await commands.run(connectionLua.probe, keys, { channel, message })).count;
}
