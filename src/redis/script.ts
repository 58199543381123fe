import { createHash } from "node:crypto";
import { slotOf } from "../util/slots.ts";

/** A script as made by tools/build/embed-lua.mjs. */
export interface Script {
  readonly name: string;
  readonly sha: string;
  readonly lua: string;
  /** Left out: a script of the application, or a part of one. */
  readonly form?: Form;
  /**
   * A script of the application: runs unchanged, in Cluster too, and its reply has the client
   * library's form.
   */
  readonly isForeign?: true;
  /**
   * Its answer counts only on the connection on which it was sent: it is given up when that is
   * lost.
   */
  readonly isBound?: true;
  /**
   * In Cluster, while a slot moves and its keys are apart, it fails at once. ioredis retries other
   * scripts for 1.6 s.
   */
  readonly isImpatient?: true;
  /** Sent as text: a process that ends cannot resend a script that the server does not know. */
  readonly isWhole?: true;
}

/** What a script takes and answers. */
export interface Form {
  /** The arguments that are always sent, and those that may be left out at the end, in order. */
  readonly args: readonly string[];
  readonly more?: readonly string[];
  /** Are they repeated, for each of several locks? */
  readonly each?: boolean;
  readonly replies: Rows;
}

/**
 * What a list may be: its fields, in order, by the code that it begins with. Several codes have a |
 * between them; "": it begins with none.
 */
export interface Rows {
  readonly [codes: string]: {
    /**
     * A type, see `Value`; or a list, or one with many rows. `name?`: may be missing at the end;
     * `...name`: rows until the end of the list.
     */
    readonly [name: string]: string | Rows | readonly [Rows];
  };
}

const made = new Map<Script, Script>();

/**
 * The script for a Cluster: SPUBLISH for PUBLISH, SHARDNUMSUB for NUMSUB. There a message goes to
 * the subscribers of the channel's slot. A plain one would go through every node of the Cluster,
 * and its receivers would be counted at one node only.
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

/** The keys of a script in Redis's form. Built once for each lock. */
export class ScriptKeys {
  /** Without any prefix. */
  readonly names: readonly string[];
  readonly full: readonly string[];
  /** Their number, then the keys, in Redis's protocol. */
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

  /** Their common hash slot; null: there are no keys. */
  get slot(): number | null {
    const [first] = this.full;
    this.#slot ??= first === undefined ? null : slotOf(first);
    return this.#slot;
  }
}
