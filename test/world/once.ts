import type { LockClient, OnceOptions, OnceResult, Turn } from "../../src/index.ts";
import { leaseLike } from "../support/lease-like.ts";
import type { AnyLease } from "./kinds.ts";

/** The options of a job: the same in all processes. */
export interface Job extends Required<Pick<OnceOptions, "every" | "aligned" | "onCrash">> {
  /** null: its client's own lease. */
  readonly lease: number | null;
}

const job = (every: number, aligned: boolean, lease: number | null, onCrash: Job["onCrash"]): Job => ({
  ...{ every, aligned, lease, onCrash },
});

/** By name: the letter that a run gives to its names, and a number. */
const JOBS: Readonly<Record<string, Job>> = {
  a1: job(500, false, 1_000, "again"),
  a2: job(1_500, true, null, "again"),
  b1: job(3_000, false, 1_000, "keep"),
  b2: job(1_000, true, 1_000, "keep"),
  c1: job(3_000, true, 1_000, "again"),
  c2: job(1_500, false, null, "again"),
};
/** How many jobs there are for each letter. */
export const JOBS_EACH = 2;

/** @throws Error if no job has this name */
export function jobOf(name: string): Job {
  const found = JOBS[name.replace(/^once:/, "")];
  if (!found) throw new Error(`no job has the name ${name}`);
  return found;
}

/** A turn as the lease of a caller; `unlock()` ends its body. */
export interface TurnLease extends Pick<Turn, "held" | "signal" | "remaining"> {
  /** The server's time in ms. */
  readonly begin: number;
  /** Does the body throw at its end? */
  throws: boolean;
  unlock(): Promise<void>;
}

/** What a call is told that may not run its body. */
export type NotRun = Extract<OnceResult<unknown>, { readonly ran: false }>;

/**
 * Calls `runOnce`. Resolves when the body runs, or with null after `notRun` was called; rejects as
 * the call does. `unlock()` of the lease rejects if the call does not end as its body does.
 */
export function runJob(
  client: LockClient,
  name: string,
  signal: AbortSignal | null,
  notRun: (told: NotRun) => void,
): Promise<AnyLease | null> {
  const { lease, ...options } = jobOf(name);
  const thrown = new Error(`the body of ${name} throws`);
  const value = {};
  let bodies = 0;
  let isEnding = false;
  let isEarly = false;
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return new Promise((resolve, reject) => {
    const call = client.runOnce(
      name,
      { ...options, ...(lease !== null && { lease }), ...(signal && { signal }) },
      async (turn) => {
        bodies++;
        const own: TurnLease = leaseLike(turn, {
          begin: turn.begin,
          throws: false,
          unlock: () => leave(own),
        });
        resolve(own as unknown as AnyLease);
        await ended;
        if (own.throws) throw thrown;
        return value;
      },
    );
    const leave = async (own: TurnLease): Promise<void> => {
      isEnding = true;
      end();
      const outcome = await call.catch((error: unknown) => {
        if (error === thrown && own.throws) return thrown;
        throw error;
      });
      if (isEarly) throw new Error(`the call of ${name} ended before its body`);
      if (bodies !== 1) throw new Error(`one call of ${name} ran ${bodies} bodies`);
      if (outcome === thrown) return;
      if (own.throws) throw new Error(`the body of ${name} threw, and its call resolved`);
      const { ran, value: got } = outcome as OnceResult<object>;
      if (!ran || got !== value) throw new Error(`the call of ${name} resolved without the body's value`);
    };
    const over = (): void => {
      isEarly = bodies > 0 && !isEnding;
    };
    call.then(
      (outcome) => {
        over();
        if (outcome.ran) return;
        notRun(outcome);
        resolve(null);
      },
      (error: unknown) => {
        over();
        reject(error);
      },
    );
  });
}
