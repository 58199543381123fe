import type { Call } from "../driver.ts";
import { type Client, toWord, type Word } from "./client.ts";

/** A command under way. It may be given to several clients in turn. */
export class Sending {
  readonly call: Call;
  /** The client that has it; null: it waits for one. */
  on: Client | null = null;
  /** How often Redis has redirected or postponed it. */
  redirects = 0;
  /** The address of the node that it goes to next, after ASKING, whatever the slot map says. */
  asked = "";

  constructor(call: Call) {
    this.call = call;
  }

  get words(): Word[] {
    const { name, script, keys, argv } = this.call;
    const text = name === "evalsha" ? script.sha : script.lua;
    return [name, text, String(keys.full.length), ...keys.full, ...argv.map(toWord)];
  }
}
