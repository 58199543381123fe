import type { Grant } from "./grants.ts";
import type { Holding, Run } from "./run.ts";

/** A hold that another caller took away. */
interface Forced {
  readonly at: number;
  /** Tokens up to this one are of holds before it. */
  readonly token: number;
  /** Until then its process may not know. */
  readonly knownBy: number;
}

/** In ms: callers may enter without a round trip for this long after Redis last answered. */
const FRESH = 100;
/** In ms: how much later than its message a process may notice that its hold was taken away. */
const MARGIN = 10;

/** Which holds were force-released, and when their processes must know. */
export class ForcedHolds {
  readonly #run: Run;
  readonly #byOwner = new Map<string, Forced>();

  constructor(run: Run) {
    this.#run = run;
  }

  /** `receives`: does its process receive messages at this moment? */
  add({ name, process }: Grant, receives: boolean): void {
    const { time, delays, server } = this.#run;
    const known = time.now + delays.most * (delays.slow > 0 ? 20 : 1) + MARGIN;
    const forced = {
      at: time.now,
      token: server.redis.micros,
      knownBy: receives ? known : Number.POSITIVE_INFINITY,
    };
    this.#byOwner.set(`${name} ${process}`, forced);
  }

  /**
   * May this caller, which came before, still believe that it holds what was taken away? Or one that
   * came later, and joined an acquisition whose answer, from before, came after it.
   */
  mayBelieve(holding: Pick<Holding, "name" | "since" | "member" | "lease">): boolean {
    const { name, member, since } = holding;
    const forced = this.#byOwner.get(`${name} ${member.process.number}`);
    if (!forced || (since > forced.at && !isBefore(holding, forced))) return false;
    return this.#run.time.now <= forced.knownBy || member.process.pausedUntil > forced.at;
  }

  /**
   * Was a hold of this process taken away after the caller came; or before, and the caller entered it
   * before the process could know?
   */
  has(holding: Pick<Holding, "name" | "since" | "member" | "lease">): boolean {
    const { name, member, since } = holding;
    const forced = this.#byOwner.get(`${name} ${member.process.number}`);
    if (!forced) return false;
    return isBefore(holding, forced) || since <= Math.min(forced.knownBy, forced.at + FRESH + MARGIN);
  }
}

/** Is the lease of a hold from before it? Leases without tokens are told by when their callers came. */
const isBefore = ({ lease }: Pick<Holding, "lease">, { token: last }: Forced): boolean =>
  "token" in lease && typeof lease.token === "number" && lease.token <= last;
