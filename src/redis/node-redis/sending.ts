import { Call } from "../call.ts";
import { type Client, toWord, type Word } from "./client.ts";

/** A call that may be given to several clients in turn. */
export class Sending extends Call {
  /** The client that has it; null: it waits for one. */
  on: Client | null = null;
  /** How often Redis has redirected or postponed it. */
  redirects = 0;
  /** The address of the node that it goes to next, after ASKING, whatever the slot map says. */
  asked = "";

  get command(): Word[] {
    const { name, script, keys, argv } = this;
    const text = name === "evalsha" ? script.sha : script.lua;
    return [name, text, String(keys.full.length), ...keys.full, ...argv.map(toWord)];
  }
}
