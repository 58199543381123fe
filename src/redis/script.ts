import { createHash } from "node:crypto";
import { slotOf } from "../util/slots.ts";

/** A script as tools/build/embed-lua.mjs makes it. */
export interface Script {
  readonly name: string;
  readonly sha: string;
  readonly lua: string;
  /** A text of the application: runs as it is, in Cluster too, and its reply is told as ioredis tells it. */
  readonly isForeign?: true;
  /** Its answer counts only on the connection that it was sent on: it is given up when that is lost. */
  readonly isBound?: true;
  /**
   * In Cluster, while a slot moves and its keys are apart, it fails at once. Other scripts are
   * tried again for 1.6 s by ioredis.
   */
  readonly isImpatient?: true;
  /**
   * Sent as text: what a process sends as it ends cannot be sent again to a server that does not
   * know the script.
   */
  readonly isWhole?: true;
}

const made = new Map<Script, Script>();

/**
 * The script as a Cluster needs it: SPUBLISH for PUBLISH, SHARDNUMSUB for NUMSUB. There a message
 * goes to the subscribers of the channel's slot; a plain one would go through every node of the
 * Cluster, and its receivers would be counted at one node only.
 */
export function sharded(script: Script): Script {
  let variant = made.get(script);
  if (!variant) {
    const lua = script.lua.replaceAll('"PUBLISH"', '"SPUBLISH"').replaceAll('"NUMSUB"', '"SHARDNUMSUB"');
    variant = { ...script, lua, sha: createHash("sha1").update(lua).digest("hex") };
    made.set(script, variant);
  }
  return variant;
}

/** The keys of a script, as Redis reads them. Made once for each lock. */
export class ScriptKeys {
  /** Without the connection's `keyPrefix`. */
  readonly names: readonly string[];
  readonly full: readonly string[];
  /** Their number, and they, in Redis's protocol. */
  readonly text: string;
  #slot: number | null | undefined;

  constructor(prefix: string, names: readonly string[]) {
    const full: string[] = [];
    let text = `$${String(names.length).length}\r\n${names.length}\r\n`;
    for (const name of names) {
      const key = prefix + name;
      full.push(key);
      text += `$${Buffer.byteLength(key)}\r\n${key}\r\n`;
    }
    this.names = names;
    this.full = full;
    this.text = text;
  }

  /** The hash slot of all of them; null: there are none. */
  get slot(): number | null {
    const [first] = this.full;
    this.#slot ??= first === undefined ? null : slotOf(first);
    return this.#slot;
  }
}
