import { abort, ask, giveBack, type Plan } from "./callers.ts";
import { onceKind } from "./kinds.ts";
import { JOBS_EACH, jobOf, type NotRun, type TurnLease } from "./once.ts";
import type { Member, Request, Run } from "./run.ts";

/** What calls were told that could not run their bodies. */
const refusals = new WeakMap<Request, NotRun>();

/** Undefined: the call ended in another way. */
export const refusalOf = (request: Request): NotRun | undefined => refusals.get(request);

/** A caller that runs jobs once per interval, until the plan's end. */
export async function runJobs(run: Run, member: Member, plan: Plan): Promise<void> {
  const { dice, time } = run;
  const { process } = member;
  while (run.goesOnIn(member)) {
    await process.sleep(dice.between(1, 400));
    if (time.now >= plan.end || process.isDead) return;
    const request = requestOf(run, member, `once:${dice.one(plan.names)}${dice.whole(1, JOBS_EACH)}`);
    if (request.controller) {
      const most = dice.chance(0.5) ? 4 * run.delays.most : 500;
      process.timers.setTimeout(() => abort(run, request), dice.between(0, most));
    }
    const holding = await ask(run, request);
    if (!holding) continue;
    const { every } = jobOf(holding.name);
    await process.sleep(dice.between(...dice.one(workOf(every))));
    if (process.isDead) return;
    (holding.lease as unknown as TurnLease).throws = dice.chance(0.15);
    const left = giveBack(run, holding);
    if (dice.chance(0.7)) await left;
    else run.goesOn(member, left);
  }
}

/** In ms: how long a body may take. Some take longer than their interval, and than their lease. */
const workOf = (every: number): readonly (readonly [number, number])[] => [
  ...Array<readonly [number, number]>(8).fill([1, 100]),
  [100, 4_000],
  [every, 2 * every],
];

function requestOf({ dice, time }: Run, member: Member, name: string): Request {
  const request: Request = {
    ...{ member, kindName: "once", name, units: 1, wait: null, isFixed: false, since: time.now },
    kind: onceKind((told) => void refusals.set(request, told)),
    controller: dice.chance(0.1) ? new AbortController() : undefined,
    abortedAt: Number.POSITIVE_INFINITY,
  };
  return request;
}
