import pTimeout from "p-timeout";
import { infoField, type Link } from "../../inside.ts";

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
    const field = (name: string): string | null => infoField(info, name);
    this.run = field("run_id");
    // What Redis compares with its limit: without the buffers of replicas and of the append-only file.
    const used = Number(field("used_memory")) - Number(field("mem_not_counted_for_evict"));
    const most = Number(field("maxmemory"));
    const isLimited = most > 0 && field("maxmemory_policy") === "noeviction";
    this.memory = isLimited ? Math.min(100, Math.floor((100 * used) / most)) : null;
  }
}
