import { fields } from "../redis/replies.ts";
import { decodeTold, longestOf, STREAM, type Told } from "./observed.ts";
import type { LockUIOptions } from "./options.ts";
import type { Happened, ShownHeat } from "./shown.ts";

/** ms of a step, and how many of them are shown. */
const STEP = 15_000;
const STEPS = 60;
/** Entries that are read at a time. */
const PIECE = 500;
/** Names that are remembered, and what happened to each. */
const NAMES = 1_000;
const HISTORY = 50;
/** Of which the page shows so many. */
const SHOWN = 100;

/** What has become of one lock. */
interface Known {
  /** By step of time: how many calls had waited for how long. */
  readonly waits: Map<number, Map<number, number>>;
  /** The latest last. */
  readonly events: (Omit<Happened, "ago"> & { readonly at: number })[];
}

/** What observed processes have told in the last 15 minutes. */
export class Heat {
  readonly #redis: NonNullable<LockUIOptions["redis"]>;
  #known = new Map<string, Known>();
  /** When each client has told something last. */
  readonly #clients = new Map<string, number>();
  #last = "";
  /** The time of the server, in ms. */
  #now = 0;
  #reading: Promise<void> | null = null;

  constructor(redis: NonNullable<LockUIOptions["redis"]>) {
    this.#redis = redis;
  }

  get processes(): number {
    return this.#clients.size;
  }

  /** Reads what was told since the last time, once for all that ask meanwhile. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const [seconds] = fields(await this.#redis.callBuffer("TIME"));
    this.#now = Number(seconds) * 1_000;
    this.#last ||= String(this.#now - STEP * STEPS);
    for (;;) {
      const reply = await this.#redis.callBuffer("XRANGE", STREAM, `(${this.#last}`, "+", "COUNT", PIECE);
      const entries = fields(reply);
      for (const entry of entries) {
        const [id, words] = fields(entry);
        this.#last = String(id);
        const told = decodeTold(String(fields(words)[1]));
        if (told) this.#add(Number.parseInt(this.#last, 10), told);
      }
      if (entries.length < PIECE) break;
    }
    this.#forget();
  }

  heats(): ShownHeat[] {
    const first = Math.floor(this.#now / STEP) - STEPS + 1;
    const heats = [...this.#known].map(([name, { waits, events }]) => {
      const steps = Array.from({ length: STEPS }, (_, i) => [...(waits.get(first + i) ?? [])]);
      const counts = steps.map((counted) => counted.reduce((sum, [, count]) => sum + count, 0));
      const p95 = steps.map((counted, i) => percentile(counted, counts[i] ?? 0));
      const lost = events.filter(({ what }) => what === "lost").length;
      return { name, waits: counts, p95, lost };
    });
    const weight = ({ waits, lost }: ShownHeat): number => waits.reduce((sum, count) => sum + count, lost);
    return heats.sort((one, other) => weight(other) - weight(one)).slice(0, SHOWN);
  }

  /** The latest first. */
  history(name: string): Happened[] {
    const { events } = this.#known.get(name) ?? { events: [] };
    return events.map(({ at, ...one }) => ({ ...one, ago: Math.max(0, this.#now - at) })).reverse();
  }

  /** The last loss. Null: nobody has told of one. */
  lost(name: string): Happened | null {
    const last = this.#known.get(name)?.events.findLast(({ what }) => what === "lost");
    if (!last) return null;
    const { at, ...one } = last;
    return { ...one, ago: Math.max(0, this.#now - at) };
  }

  #add(at: number, { client, waits, events }: Told): void {
    this.#clients.set(client, at);
    const step = Math.floor(at / STEP);
    for (const [name, counted] of Object.entries(waits)) {
      const known = this.#of(name);
      const sums = known.waits.get(step) ?? new Map<number, number>();
      known.waits.set(step, sums);
      for (const [wait, count] of Object.entries(counted)) {
        const longest = Number(wait);
        sums.set(longest, (sums.get(longest) ?? 0) + Number(count));
      }
    }
    for (const [what, name, ago, after, why] of events) {
      const known = this.#of(String(name));
      known.events.push({ what, at: at - Number(ago), after: Number(after), why, client });
      if (known.events.length > HISTORY) known.events.shift();
    }
  }

  #of(name: string): Known {
    const known = this.#known.get(name) ?? { waits: new Map(), events: [] };
    // The latest last, so that those go first of which nothing is told any more.
    this.#known.delete(name);
    this.#known.set(name, known);
    return known;
  }

  #forget(): void {
    const oldest = this.#now - STEP * STEPS;
    for (const [client, at] of this.#clients) if (at < oldest) this.#clients.delete(client);
    const names = [...this.#known.keys()];
    for (const name of names.slice(0, Math.max(0, names.length - NAMES))) this.#known.delete(name);
    for (const [name, { waits, events }] of this.#known) {
      for (const step of waits.keys()) if ((step + 1) * STEP < oldest) waits.delete(step);
      while (events[0] && events[0].at < oldest) events.shift();
      if (waits.size === 0 && events.length === 0) this.#known.delete(name);
    }
  }
}

function percentile(counted: [number, number][], count: number): number | null {
  if (count === 0) return null;
  let left = Math.ceil(count * 0.95);
  for (const [step, number] of counted.sort(([one], [other]) => one - other)) {
    left -= number;
    if (left <= 0) return longestOf(step);
  }
  return null;
}
