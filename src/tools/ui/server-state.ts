import pTimeout from "p-timeout";
import { infoField, type Link, memoryUse } from "../../inside.ts";
import type { ShownServer } from "./shown.ts";

/** ms that a look at the locks waits for this. */
const PATIENCE = 1_000;
/** Looks whose round trips count: their median is shown. */
const LOOKS = 3;

/**
 * What the server says about itself, and how long its answer takes. A server whose user may not run
 * INFO says nothing: then the page reports no restart and no full memory.
 */
export class ServerState {
  readonly #link: Link;
  /** When it was asked for the time, on the monotonic clock; null: it has answered. */
  #measured: number | null = null;
  #isAsked = false;
  /** ms to the answer, or up to now, of the last looks. */
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
    const sorted = [...this.#roundTrips].sort((one, other) => one - other);
    const roundTrip = Math.round(100 * (sorted[(sorted.length - 1) >> 1] ?? 0)) / 100;
    return { roundTrip, usedMemory: this.#used, maxMemory: this.#limit };
  }

  /**
   * Measures a round trip, after a pause: right after another answer, a Redis that stands still now
   * and then would seem fast. Never rejects, and does not wait for long.
   */
  async measure(): Promise<void> {
    let ms: number | null = null;
    const began = this.#measured ?? performance.now();
    if (this.#measured === null) {
      this.#measured = began;
      const answered = (): void => {
        this.#measured = null;
        ms = performance.now() - began;
      };
      // Refused, it was answered too.
      const asked = this.#link.command(["TIME"]).then(answered, answered);
      await pTimeout(asked, { milliseconds: PATIENCE, fallback: () => {} });
    }
    this.#roundTrips = [...this.#roundTrips.slice(1 - LOOKS), ms ?? performance.now() - began];
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
    const run = infoField(info, "run_id");
    // How long one server was away says nothing of the next.
    if (run !== null && this.run !== null && run !== this.run) this.#roundTrips = [];
    this.run = run;
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
