import pTimeout from "p-timeout";
import { infoField, type Link, memoryUse } from "../../inside.ts";
import type { ShownServer } from "./shown.ts";

/** ms that a look at the locks waits for this. */
const PATIENCE = 1_000;

/**
 * What the server says about itself, and how long its answer takes. A server whose user may not run
 * INFO says nothing: then the page reports no restart and no full memory.
 */
export class ServerState {
  readonly #link: Link;
  /** When it was asked, on the monotonic clock; null: it has answered. */
  #asked: number | null = null;
  /** ms to the answer, or up to now, of the last two looks. */
  #roundTrips: readonly number[] = [];
  #used: number | null = null;
  #limit: number | null = null;
  /** Changes when the server restarts, and when another server takes its place. Null: not known. */
  run: string | null = null;
  /** Percent of `maxmemory` in use, at most 100. Null: not known, no limit, or keys are evicted. */
  memory: number | null = null;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Null: it was not asked yet. */
  get shown(): ShownServer | null {
    if (this.#roundTrips.length === 0) return null;
    // One long one may be the fault of a busy process here.
    const roundTrip = Math.round(100 * Math.min(...this.#roundTrips)) / 100;
    return { roundTrip, usedMemory: this.#used, maxMemory: this.#limit };
  }

  /** Never rejects, and does not wait for long. One command at a time: a second would be no sooner. */
  async refresh(): Promise<void> {
    let info = "";
    let took = 0;
    const began = this.#asked ?? performance.now();
    if (this.#asked === null) {
      this.#asked = began;
      const asked = this.#link.command(["INFO"]).finally(() => {
        this.#asked = null;
        took = performance.now() - began;
      });
      const answer = pTimeout(asked, { milliseconds: PATIENCE, fallback: () => "" });
      info = String(await answer.catch(() => ""));
    }
    this.#roundTrips = [...this.#roundTrips.slice(-1), took || performance.now() - began];
    this.run = infoField(info, "run_id");
    this.#used = bytes(info, "used_memory");
    this.#limit = bytes(info, "maxmemory") || null;
    const isLimited = infoField(info, "maxmemory_policy") === "noeviction";
    const use = isLimited ? memoryUse(info) : null;
    this.memory = use === null ? null : Math.min(100, Math.floor(100 * use));
  }
}

function bytes(info: string, field: string): number | null {
  const said = infoField(info, field);
  return said === null ? null : Number(said);
}
