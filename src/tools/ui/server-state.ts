import pTimeout from "p-timeout";
import { infoField, type Link, memoryUse } from "../../inside.ts";

/** ms that a look at the locks waits for this. */
const PATIENCE = 1_000;

/**
 * What the server says about itself, as the line on top needs it. A server whose user may not run
 * INFO says nothing: then the page reports no restart and no full memory.
 */
export class ServerState {
  readonly #link: Link;
  #isAsked = false;
  /** Changes when the server restarts, and when another server takes its place. Null: not known. */
  run: string | null = null;
  /** Percent of `maxmemory` in use, at most 100. Null: not known, no limit, or keys are evicted. */
  memory: number | null = null;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Never rejects, and does not wait for long. One command at a time: a second would be no sooner. */
  async refresh(): Promise<void> {
    let info = "";
    if (!this.#isAsked) {
      this.#isAsked = true;
      const asked = this.#link.command(["INFO"]).finally(() => {
        this.#isAsked = false;
      });
      const answer = pTimeout(asked, { milliseconds: PATIENCE, fallback: () => "" });
      info = String(await answer.catch(() => ""));
    }
    this.run = infoField(info, "run_id");
    const isLimited = infoField(info, "maxmemory_policy") === "noeviction";
    const use = isLimited ? memoryUse(info) : null;
    this.memory = use === null ? null : Math.min(100, Math.floor(100 * use));
  }
}
