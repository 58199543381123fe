import type { MultiLease } from "../../src/index.ts";
import { leaseLike } from "../support/lease-like.ts";
import { abort, enter, leaving, leftTogether, type Plan, refuse } from "./callers.ts";
import { type AnyLease, type KindName, kinds } from "./kinds.ts";
import type { Holding, Member, Request, Run, Together } from "./run.ts";

/** Kinds whose locks are members: multi-locks order them by name. */
const MEMBERS: readonly KindName[] = ["lock", "lock of a shared name"];

/** A caller that takes several locks at once, until the plan's end. */
export async function takeSeveral(run: Run, member: Member, plan: Plan): Promise<void> {
  const { dice, time } = run;
  const { process, client } = member;
  while (run.goesOnIn(member)) {
    await process.sleep(dice.between(1, 400));
    if (time.now >= plan.end || process.isDead) return;
    const { requests, wait, controller } = requestsOf(run, member, plan);
    const names = requests.map(({ name }) => name);
    if (controller) process.timers.setTimeout(() => abort(run, requests[0] as Request), dice.between(0, 500));
    for (const request of requests) {
      run.requests.add(request);
      for (const check of run.checks) check.asked?.(request);
    }
    run.story.tell(process.name, `asks for ${names.join(" and ")} together`);
    const lock = client.multiLock(names);
    const options = {
      ...(wait !== null && Number.isFinite(wait) && { wait }),
      ...(controller && { signal: controller.signal }),
    };
    const outcome = await (wait === null ? lock.tryLock(options) : lock.lock(options)).then(
      (lease) => ({ lease, error: null }),
      (error: unknown) => ({ lease: null, error }),
    );
    for (const request of requests) run.requests.delete(request);
    if (process.isDead) return;
    const { lease, error } = outcome;
    if (lease === null) for (const request of requests) refuse(run, request, error);
    else await hold(run, member, requests, lease);
  }
}

/** In an order of the caller's own. */
function requestsOf({ dice, time }: Run, member: Member, { names }: Plan) {
  const all = MEMBERS.flatMap((kindName) => names.map((name) => ({ kindName, name })));
  for (let i = all.length - 1; i > 0; i--) {
    const other = dice.whole(0, i);
    [all[i], all[other]] = [all[other] as (typeof all)[0], all[i] as (typeof all)[0]];
  }
  const isTry = dice.chance(0.2);
  const wait = isTry ? null : dice.chance(0.4) ? dice.whole(0, 3_000) : Number.POSITIVE_INFINITY;
  const controller = !isTry && dice.chance(0.1) ? new AbortController() : undefined;
  const chosen = all.slice(0, dice.whole(2, all.length));
  const together: Together = {
    names: chosen.map(({ kindName, name }) => `${kinds[kindName].family}:${name}`),
  };
  const requests = together.names.map((name, i): Request => {
    const { kindName } = chosen[i] as (typeof all)[0];
    return {
      ...{ member, kindName, kind: kinds[kindName], name, units: 1, wait, isFixed: false },
      ...{ since: time.now, controller, abortedAt: Number.POSITIVE_INFINITY, together },
    };
  });
  return { requests, wait, controller };
}

async function hold(run: Run, { process }: Member, requests: readonly Request[], lease: MultiLease) {
  const { dice } = run;
  const holdings = requests.map((request) => enter(run, request, memberOf(lease, request.name)));
  await process.sleep(dice.chance(0.9) ? dice.between(0, 60) : dice.between(60, 2_000));
  if (process.isDead) return;
  for (const holding of holdings) leaving(run, holding);
  let errors: readonly unknown[] = [];
  try {
    await lease.unlock();
  } catch (error) {
    errors = error instanceof AggregateError ? error.errors : [error];
  }
  if (process.isDead) return;
  const errorOf = ({ name }: Holding): unknown =>
    errors.find((error) => (error as { lockName?: string }).lockName === name) ?? null;
  for (const holding of holdings) leftTogether(run, holding, errorOf(holding));
}

/** The lease of one of them: held while all are. */
const memberOf = (lease: MultiLease, name: string): AnyLease =>
  leaseLike(lease, { token: lease.tokens.get(name) }) as unknown as AnyLease;
