import type { LockEvents } from "../../index.ts";
import { clientTimer } from "../../util/client-timer.ts";
import { type CallSites, type Stack, siteIn } from "./call-sites.ts";
import { ENDED, LASTING, LONGEST_DEAF, NAMES, stepOf, type Told, type ToldCall } from "./observed.ts";

/** The least ms between two reports of a process, and between an event and its report. */
const EVERY = 5_000;
const SOON = 1_000;
/** ms from which a hold is reported although its call did not wait. */
const NOTABLE = 1_000;
/** ms after which a hold is reported while it lasts, and after which it is reported again. */
const LONG = 5_000;
const AGAIN = 60_000;
/** ms after which a process that has nothing to report says that it is observed. */
const GREET = 600_000;
const NEVER = Number.NEGATIVE_INFINITY;
/** ms by which a lease is longer than before, and not only by the time that an answer takes. */
const GROWN = 1_000;
/** What is not known of a hold that was not reported. */
const NEW = { lease: null, told: NEVER, toldLease: null } as const;

/** A call that has a lock. */
interface Held extends Pick<ToldCall, "name" | "kind" | "call" | "token"> {
  readonly since: number;
  /** Null: it did not wait. */
  readonly waitedFor: number | null;
  readonly site: Stack | null;
  /** Of its last renewal; null: none was seen. */
  lease: number | null;
  /** When it was reported, and with which lease. */
  told: number;
  toldLease: number | null;
}

/** A call that has ended, at a time of this clock. */
interface Ended extends Omit<ToldCall, "ago" | "site"> {
  readonly at: number;
  readonly site: Stack | null;
  /** While it lasted. Then the page waits for its end. */
  readonly wasReported: boolean;
}

type Listeners = Pick<LockEvents, "wait" | "acquire" | "giveup" | "release" | "renew" | "lost">;

/** Follows the calls of one client, and reports them from time to time. */
export class Reporter {
  readonly #client: string;
  readonly #sites: CallSites | null;
  readonly #send: (told: Told) => void;
  #waits = new Map<string, Map<number, number>>();
  /** Calls that wait, each with its locks. */
  readonly #waiting = new Map<number, Set<string>>();
  readonly #held = new Map<string, Held>();
  #ended: Ended[] = [];
  #deaf: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** Looks for holds that last. */
  #look: NodeJS.Timeout | undefined;
  /** Says that the process is observed. */
  #greeting: NodeJS.Timeout;
  #last = NEVER;

  /** `client`: its id. `sites`: null: they are not reported. */
  constructor(client: string, sites: CallSites | null, send: (told: Told) => void) {
    this.#client = client;
    this.#sites = sites;
    this.#send = send;
    this.#greeting = clientTimer(this.#greet, SOON);
  }

  readonly listeners: Listeners = {
    wait: ({ call, name }) => {
      const names = this.#waiting.get(call) ?? new Set();
      this.#waiting.set(call, names.add(name));
    },
    acquire: ({ call, name, kind, waitedFor: ms, token }) => {
      const names = this.#waiting.get(call);
      const hasWaited = names?.delete(name) === true;
      if (names?.size === 0) this.#waiting.delete(call);
      if (hasWaited) this.#count(name, ms);
      const waitedFor = hasWaited ? Math.round(ms) : null;
      const site = this.#sites?.of(call) ?? null;
      const since = performance.now();
      this.#held.set(`${call} ${name}`, {
        ...NEW,
        ...{ name, kind, call, token, since, waitedFor, site },
      });
      this.#look ??= clientTimer(this.#lookAround, LONG);
    },
    giveup: ({ call, name, kind, waitedFor: ms, why }) => {
      // A call for several locks gives all of them up, and names the one that was the cause.
      const hasWaited = this.#waiting.delete(call);
      const site = this.#sites?.of(call) ?? null;
      this.#sites?.ended(call);
      if (!hasWaited) return;
      this.#count(name, ms);
      const waitedFor = Math.round(ms);
      this.#end({ ...NEW, name, kind, call, waitedFor, token: null, site }, "giveup", null, why);
    },
    renew: ({ call, name, remaining }) => {
      const held = this.#held.get(`${call} ${name}`);
      if (held) held.lease = Math.round(remaining);
    },
    release: ({ call, name, heldFor }) => {
      const held = this.#leave(call, name);
      if (held && (held.waitedFor !== null || heldFor >= NOTABLE)) this.#end(held, "released", heldFor, null);
    },
    lost: ({ call, name, kind, heldFor, token, error, remains }) => {
      if (remains) return;
      // Only its release may have found out. Then there is one report more, which counts.
      const gone = { ...NEW, name, kind, call, token, waitedFor: null, site: null };
      const held = this.#leave(call, name) ?? gone;
      this.#end(held, "lost", heldFor, error.by === null ? error.reason : `${error.reason} by ${error.by}`);
    },
  };

  /** No messages arrive: `why`, in a sentence. */
  deaf(why: string): void {
    this.#deaf = why.slice(0, LONGEST_DEAF);
    this.#soon();
  }

  /** Reports at once what is left: a process that ends has no later moment for it. */
  close(): void {
    clearTimeout(this.#greeting);
    clearTimeout(this.#look);
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#tell();
  }

  #count(name: string, ms: number): void {
    if (this.#waits.size >= NAMES && !this.#waits.has(name)) return;
    const steps = this.#waits.get(name) ?? new Map<number, number>();
    this.#waits.set(name, steps.set(stepOf(ms), (steps.get(stepOf(ms)) ?? 0) + 1));
  }

  #leave(call: number, name: string): Held | undefined {
    const held = this.#held.get(`${call} ${name}`);
    this.#held.delete(`${call} ${name}`);
    // A call for several locks gives back those that it has before it gives up.
    if (!this.#waiting.has(call)) this.#sites?.ended(call);
    return held;
  }

  #end(
    { name, kind, call, waitedFor, token, lease, site, told }: Omit<Held, "since">,
    how: ToldCall["how"],
    ms: number | null,
    why: string | null,
  ): void {
    const heldFor = ms && Math.round(ms);
    const at = performance.now();
    const all = { name, kind, call, how, at, waitedFor: waitedFor ?? 0, heldFor, why, token, lease, site };
    if (this.#ended.push({ ...all, wasReported: told > NEVER }) > ENDED) {
      const first = this.#ended.findIndex(({ wasReported }) => !wasReported);
      this.#ended.splice(Math.max(0, first), 1);
    }
    this.#soon();
  }

  readonly #lookAround = (): void => {
    this.#look = this.#held.size > 0 ? clientTimer(this.#lookAround, LONG) : undefined;
    if (this.#lasting(performance.now()).length > 0) this.#soon();
  };

  /** Those that have the lock for long, and whose report is missing or old. */
  #lasting(now: number): Held[] {
    // By a lease that grew, the page knows how long ago it was renewed.
    const isDue = ({ since, told, lease, toldLease }: Held): boolean =>
      now - since >= LONG && (now - told >= AGAIN || (lease ?? 0) > (toldLease ?? 0) + GROWN);
    return [...this.#held.values()].filter(isDue).slice(0, LASTING);
  }

  readonly #greet = (): void => {
    if (performance.now() - this.#last >= GREET / 2) this.#soon();
    this.#greeting = clientTimer(this.#greet, GREET);
  };

  #soon(): void {
    this.#timer ??= clientTimer(this.#tell, Math.max(SOON, this.#last + EVERY - performance.now()));
  }

  readonly #tell = (): void => {
    this.#timer = undefined;
    const now = performance.now();
    this.#last = now;
    const ended = this.#ended.map(
      ({ at, site, wasReported, ...call }): ToldCall => ({
        ...call,
        ago: Math.round(now - at),
        // Made here, because it costs more than all else, and not all calls are reported.
        site: siteIn(site),
      }),
    );
    const lasting = this.#lasting(now).map((held): ToldCall => {
      const { name, kind, call, since, waitedFor, token, lease, site } = held;
      held.told = now;
      held.toldLease = lease;
      const until = {
        how: "holds" as const,
        ago: 0,
        waitedFor: waitedFor ?? 0,
        heldFor: Math.round(now - since),
      };
      return { name, kind, call, ...until, why: null, token, lease, site: siteIn(site) };
    });
    const told: Told = {
      client: this.#client,
      waits: Object.fromEntries([...this.#waits].map(([name, steps]) => [name, Object.fromEntries(steps)])),
      calls: [...ended, ...lasting],
      ...(this.#deaf !== null && { deaf: this.#deaf }),
    };
    this.#waits = new Map();
    this.#ended = [];
    this.#deaf = null;
    this.#send(told);
  };
}
