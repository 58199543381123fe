import type { LockClient, Remembered, RememberOptions, ResultRun } from "../../src/index.ts";
import { leaseLike } from "../support/lease-like.ts";
import { abort, ask, giveBack, type Plan } from "./callers.ts";
import type { AnyLease, Kind } from "./kinds.ts";
import type { Member, Request, Run } from "./run.ts";

/** A run as the lease of a caller; `unlock()` ends its body. */
export interface RunLease extends Pick<ResultRun, "held" | "signal" | "remaining" | "token"> {
  /** What its body returns. */
  readonly value: string;
  /** Does the body throw at its end? */
  throws: boolean;
  /** What its call has resolved with. */
  told: Remembered<string> | null;
  unlock(): Promise<void>;
}

/** What calls got that did not run. */
const served = new WeakMap<Request, Remembered<string>>();

/** Undefined: the call ended in another way. */
export const servedBy = (request: Request): Remembered<string> | undefined => served.get(request);

/** A call of `remember`. `isServed`: gets what it resolves with if its body does not run. */
export const resultKind = (
  value: string,
  options: RememberOptions,
  isServed: (told: Remembered<string>) => void,
): Kind => ({
  ...{ mode: "alone", family: "remember", isFair: false, hasTokens: true },
  take: (_, client, name, { signal }) =>
    call(client, name, value, { ...options, ...(signal && { signal }) }, isServed),
});

/** Resolves when the body runs, or with null after `isServed` was called; rejects as the call does. */
function call(
  client: LockClient,
  name: string,
  value: string,
  options: RememberOptions,
  isServed: (told: Remembered<string>) => void,
): Promise<AnyLease | null> {
  const thrown = new Error(`the body of ${name} throws`);
  let own: RunLease | null = null;
  let isEnding = false;
  return new Promise((resolve, reject) => {
    const outcome = client.remember(
      name,
      options,
      (run) =>
        new Promise<string>((ends, fails) => {
          if (own) throw new Error(`one call of ${name} runs two bodies`);
          own = leaseLike(run, {
            ...{ token: run.token, value, throws: false, told: null },
            async unlock() {
              isEnding = true;
              if (own?.throws) fails(thrown);
              else ends(value);
              const told = await outcome.catch((error: unknown) => {
                if (error !== thrown) throw error;
              });
              if (!own || !told === !own.throws)
                throw new Error(`the call of ${name} did not end as its body`);
              own.told = told ?? null;
            },
          });
          resolve(own as unknown as AnyLease);
        }),
    );
    outcome.then(
      (told) => {
        if (own) return isEnding || reject(new Error(`the call of ${name} ended before its body`));
        isServed(told);
        resolve(null);
      },
      (error: unknown) => reject(error),
    );
  });
}

/** A caller that shares results with others, until the plan's end. */
export async function shareResults(run: Run, member: Member, plan: Plan): Promise<void> {
  const { dice, time } = run;
  const { process, client } = member;
  while (run.goesOnIn(member)) {
    await process.sleep(dice.between(1, 400));
    if (time.now >= plan.end || process.isDead) return;
    const name = `remember:${dice.one(plan.names)}`;
    if (dice.chance(0.08)) {
      await client.forget(name).catch((error: unknown) => forgotten(run, error));
      continue;
    }
    const request = requestOf(run, member, name);
    if (request.controller) process.timers.setTimeout(() => abort(run, request), dice.between(0, 500));
    const holding = await ask(run, request);
    if (!holding) continue;
    await process.sleep(dice.chance(0.8) ? dice.between(0, 100) : dice.between(100, 3_000));
    if (process.isDead) return;
    (holding.lease as unknown as RunLease).throws = dice.chance(0.2);
    await giveBack(run, holding);
  }
}

const forgotten = (run: Run, error: unknown): void => {
  const { code } = error as { code?: string };
  if (code !== "LOCK_UNAVAILABLE" && code !== "CLIENT_CLOSED")
    run.fail(`forget(): ${(error as Error).stack}`);
};

/** In ms: how long results are for new callers, and leases; null: the client's own. */
const KEEPS = [0, 0, 50, 500, 5_000];
const LEASES = [null, 300, 1_000];

function requestOf({ dice, time }: Run, member: Member, name: string): Request {
  const wait = dice.chance(0.3) ? dice.whole(0, dice.chance(0.5) ? 100 : 3_000) : Number.POSITIVE_INFINITY;
  const lease = dice.one(LEASES);
  const options = { keep: dice.one(KEEPS), wait, ...(lease !== null && { lease }) };
  const request: Request = {
    ...{ member, kindName: "remember", name, units: 1, wait, isFixed: false, since: time.now },
    kind: resultKind(
      `${member.process.number} ${dice.next()}`,
      options,
      (told) => void served.set(request, told),
    ),
    controller: dice.chance(0.1) ? new AbortController() : undefined,
    abortedAt: Number.POSITIVE_INFINITY,
  };
  return request;
}
