import type { Listed } from "../../index.ts";
import { clientOf, partyOfClient } from "../../inside.ts";
import { isOfKind, type ToldCall } from "./observed.ts";
import type { Reported, ShownParty } from "./shown.ts";

/** The limit for calls, and for losses among them, which make room for others only beyond it. */
const CALLS = 50;
const LOSSES = 20;

/** A call as its process has reported it last. */
type Known = Omit<ToldCall, "ago" | "name"> & { readonly at: number; readonly client: string };

/**
 * The calls for the locks of one name that observed processes have reported. Times are ms of the
 * server's clock.
 */
export class ReportedCalls {
  /** In order of time, the latest last. */
  readonly #known: Known[] = [];

  get isEmpty(): boolean {
    return this.#known.length === 0;
  }

  /** `at`: the time of the report. */
  add(client: string, at: number, { name, ago, ...call }: ToldCall): void {
    const known = this.#known;
    const before = known.findIndex((one) => one.call === call.call && one.client === client);
    if (before >= 0) known.splice(before, 1);
    const one = { ...call, at: at - ago, client };
    // A process reports what happened up to some seconds ago, and others report meanwhile.
    known.splice(known.findLastIndex((other) => other.at <= one.at) + 1, 0, one);
    if (known.length <= CALLS) return;
    const first = this.losses > LOSSES ? 0 : known.findIndex(({ how }) => how !== "lost");
    known.splice(first, 1);
  }

  /** Drops what is older. */
  forget(oldest: number): void {
    while (this.#known[0] && this.#known[0].at < oldest) this.#known.shift();
  }

  /**
   * The latest first. One that has the lock is among them if none of the `holders` is it: then its
   * process has not reported the end.
   */
  all(kind: Listed["kind"], holders: readonly Holder[], now: number): Reported[] {
    const isPresent = (one: Known): boolean => holders.some((holder) => isOf(one, holder));
    return this.#known
      .filter((one) => isOfKind(one, kind) && !isPresent(one))
      .map((one) => reported(one, now))
      .reverse();
  }

  /** Null: its process has not reported it. */
  of(kind: Listed["kind"], holder: Holder): Pick<ToldCall, "lease" | "site"> | null {
    return this.#known.findLast((one) => isOfKind(one, kind) && isOf(one, holder)) ?? null;
  }

  /** The last loss. Null: none was reported. */
  lost(kind: Listed["kind"], now: number): Reported | null {
    const last = this.#known.findLast((one) => one.how === "lost" && isOfKind(one, kind));
    return last ? reported(last, now) : null;
  }

  get losses(): number {
    return this.#known.filter(({ how }) => how === "lost").length;
  }
}

type Holder = Pick<ShownParty, "id"> & { readonly token: number | null };

/**
 * Permits have no token: there, any call of the client fits. Redis has the first token of a hold, and
 * each caller that gets the lock by a local hand-off, or from the cache, has a higher one.
 */
const isOf = ({ how, token, client }: Known, holder: Holder): boolean =>
  how === "holds" &&
  client === clientOf(holder) &&
  (token === null || (holder.token !== null && token >= holder.token));

const reported = ({ at, token, lease, kind, ...one }: Known, now: number): Reported => ({
  ...one,
  ...partyOfClient(one.client),
  ago: Math.max(0, now - at),
});
