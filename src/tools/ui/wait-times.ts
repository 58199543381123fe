import pTimeout from "p-timeout";
import type { Listed } from "../../index.ts";
import { type Link, listOf, partyOfClient } from "../../inside.ts";
import { decodeTold, longestOf, STREAM, type Told } from "./observed.ts";
import { ReportedCalls } from "./reported-calls.ts";
import type { Reported, ShownDeaf, ShownHolder, ShownWaits } from "./shown.ts";

/** ms of a step, and how many steps are shown. */
const STEP = 15_000;
export const STEPS = 60;
/** Entries that are read at a time. */
const PIECE = 500;
/** The limit for names that are remembered. */
const NAMES = 1_000;
/** ms that a look at the locks waits for the reports. */
const PATIENCE = 1_000;
/** The limit for clients that are counted. */
const CLIENTS = 10_000;

/** The waits of a name that have ended, and its losses. */
export type EndedWaits = Pick<ShownWaits, "name" | "waits" | "p95" | "losses">;

/** ms for which a report that no messages arrive counts, and the limit for such clients. */
const DEAF_FOR = 90_000;
const DEAF = 20;

type Named = Pick<Listed, "kind" | "name">;

/** What was reported of the locks of one name. */
interface Known {
  /** By step of time and length of the wait: how many calls had waited. */
  readonly waits: Map<number, Map<number, number>>;
  readonly calls: ReportedCalls;
}

/** The reports of observed processes in the last 15 minutes. */
export class WaitTimes {
  readonly #link: Link;
  readonly #stream: string;
  #known = new Map<string, Known>();
  /** Computed once per reading for all viewers. Null: not yet. */
  #ended: EndedWaits[] | null = null;
  /** When each client last reported something. */
  readonly #clients = new Map<string, number>();
  /** The clients where no messages arrived lately, and why. */
  readonly #deaf = new Map<string, { readonly at: number; readonly why: string }>();
  /** How many entries were left out, and when. */
  readonly #dropped: [at: number, count: number][] = [];
  /** Why the newest reports were not read, in a sentence; null: they were. */
  trouble: string | null = "The reports of observed processes have not been read yet.";
  #last = "";
  /** The time of the server, in ms. */
  #now = 0;
  #reading: Promise<void> | null = null;

  /** `prefix`: of the observed clients. */
  constructor(link: Link, prefix = "") {
    this.#link = link;
    this.#stream = prefix + STREAM;
  }

  get processes(): number {
    return this.#clients.size;
  }

  /** How many entries of these 15 minutes were not written by `observe()`. */
  get dropped(): number {
    return this.#dropped.reduce((sum, [, count]) => sum + count, 0);
  }

  /** Which reports are missing, in sentences; null: none are. */
  get untold(): string | null {
    const { dropped, trouble } = this;
    const some = dropped === 1 ? "1 entry was" : `${dropped} entries were`;
    const left = dropped === 0 ? null : `${some} left out of ${this.#stream}: not written by observe().`;
    return [trouble, left].filter((one) => one !== null).join(" ") || null;
  }

  /**
   * Reads the reports since the last time, once for all looks that ask meanwhile. Never rejects, and
   * does not wait for long: the locks can be shown without them, and late reports are shown later.
   */
  refresh(): Promise<void> {
    this.#reading ??= this.#read()
      .then(
        () => {
          this.trouble = null;
        },
        (error: unknown) => {
          this.trouble = `The reports of observed processes could not be read: ${error instanceof Error ? error.message : String(error)}`;
        },
      )
      .finally(() => {
        this.#reading = null;
      });
    return pTimeout(this.#reading, { milliseconds: PATIENCE, fallback: () => {} });
  }

  async #read(): Promise<void> {
    const [seconds] = listOf(await this.#link.command(["TIME"]));
    this.#now = Number(seconds) * 1_000;
    if (timeOf(this.#last) > this.#now) await this.#lookBack();
    this.#last ||= String(this.#now - STEP * STEPS);
    for (;;) {
      const reply = await this.#entries(`(${this.#last}`, "+", "COUNT", PIECE);
      const entries = listOf(reply);
      for (const entry of entries) {
        const [id, words] = listOf(entry);
        this.#last = String(id);
        // A writer may give its entry a time in the future, and later entries then get that time
        // too. None is later than now.
        const at = Math.min(timeOf(this.#last), this.#now);
        const told = decodeTold(String(listOf(words)[1]));
        if (told) this.#add(at, told);
        else this.#drop(at);
      }
      if (entries.length < PIECE) break;
    }
    this.#forget();
    this.#ended = null;
  }

  /**
   * Begins again if the last entry has gone: after a clock that was ahead, the entries of a new
   * stream have lower ids.
   */
  async #lookBack(): Promise<void> {
    const last = listOf(await this.#entries(this.#last, this.#last));
    if (last.length > 0) return;
    this.#last = "";
    this.#known.clear();
    this.#clients.clear();
    this.#deaf.clear();
    this.#dropped.length = 0;
  }

  #entries(...range: (string | number)[]): Promise<unknown> {
    return this.#link.commandOn(this.#stream, ["XRANGE"], range);
  }

  #drop(at: number): void {
    const last = this.#dropped.at(-1);
    if (last && last[0] >= at - STEP) last[1]++;
    else this.#dropped.push([at, 1]);
  }

  /** The waits that have ended, and the losses, of all names that are remembered. */
  ended(): readonly EndedWaits[] {
    this.#ended ??= this.#count();
    return this.#ended;
  }

  #count(): EndedWaits[] {
    const first = Math.floor(this.#now / STEP) - STEPS + 1;
    const known = [...this.#known].filter(([, { waits, calls }]) => waits.size > 0 || calls.losses > 0);
    return known.map(([name, { waits, calls }]) => {
      const steps = Array.from({ length: STEPS }, (_, i) => [...(waits.get(first + i) ?? [])]);
      const counts = steps.map((counted) => counted.reduce((sum, [, count]) => sum + count, 0));
      const p95 = steps.map((counted, i) => percentile(counted, counts[i] ?? 0));
      return { name, waits: counts, p95, losses: calls.losses };
    });
  }

  /** Calls for this lock, the latest first, without those that its holders have made. */
  calls({ kind, name }: Named, holders: readonly ShownHolder[]): Reported[] {
    return this.#known.get(name)?.calls.all(kind, holders, this.#now) ?? [];
  }

  /** What the process of a holder has reported of it. Null: nothing. */
  callOf({ kind, name }: Named, holder: Pick<ShownHolder, "id" | "token">): ReturnType<ReportedCalls["of"]> {
    return this.#known.get(name)?.calls.of(kind, holder) ?? null;
  }

  /** The last loss. Null: none was reported. */
  lost({ kind, name }: Named): Reported | null {
    return this.#known.get(name)?.calls.lost(kind, this.#now) ?? null;
  }

  /** Where no messages arrive: each is reported again every minute. */
  deaf(): ShownDeaf[] {
    return [...this.#deaf].map(([client, { at, why }]) => ({
      ...partyOfClient(client),
      client,
      why,
      ago: Math.max(0, this.#now - at),
    }));
  }

  #add(at: number, { client, waits, calls, deaf }: Told): void {
    if (deaf !== undefined && (this.#deaf.size < DEAF || this.#deaf.has(client)))
      this.#deaf.set(client, { at, why: deaf });
    if (this.#clients.size < CLIENTS || this.#clients.has(client)) this.#clients.set(client, at);
    const step = Math.floor(at / STEP);
    for (const [name, counted] of Object.entries(waits)) {
      const known = this.#of(name);
      const sums = known.waits.get(step) ?? new Map<number, number>();
      known.waits.set(step, sums);
      for (const [wait, count] of Object.entries(counted)) {
        const longest = Number(wait);
        sums.set(longest, (sums.get(longest) ?? 0) + count);
      }
    }
    for (const call of calls) this.#of(call.name).calls.add(client, at, call);
  }

  #of(name: string): Known {
    const known = this.#known.get(name) ?? { waits: new Map(), calls: new ReportedCalls() };
    // The latest last, so that names without new reports are forgotten first.
    this.#known.delete(name);
    this.#known.set(name, known);
    return known;
  }

  #forget(): void {
    const oldest = this.#now - STEP * STEPS;
    for (const [client, { at }] of this.#deaf) if (at < this.#now - DEAF_FOR) this.#deaf.delete(client);
    for (const [client, at] of this.#clients) if (at < oldest) this.#clients.delete(client);
    while (this.#dropped[0] && this.#dropped[0][0] < oldest) this.#dropped.shift();
    const names = [...this.#known.keys()];
    for (const name of names.slice(0, Math.max(0, names.length - NAMES))) this.#known.delete(name);
    for (const [name, { waits, calls }] of this.#known) {
      for (const step of waits.keys()) if ((step + 1) * STEP < oldest) waits.delete(step);
      calls.forget(oldest);
      if (waits.size === 0 && calls.isEmpty) this.#known.delete(name);
    }
  }
}

/** When an entry was written, in ms: its id begins with that. */
const timeOf = (id: string): number => Number.parseInt(id, 10);

function percentile(counted: [number, number][], count: number): number | null {
  if (count === 0) return null;
  let left = Math.ceil(count * 0.95);
  for (const [step, number] of counted.sort(([one], [other]) => one - other)) {
    left -= number;
    if (left <= 0) return longestOf(step);
  }
  return null;
}
