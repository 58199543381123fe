import type { LockClient, LockOptions } from "../../src/index.ts";
import { type KindName, kinds, PERMITS } from "./kinds.ts";
import type { Extension, Holding, Member, Request, Run } from "./run.ts";

/** How often a caller takes each kind, relative to the others. */
const WEIGHTS: readonly (readonly [KindName, number])[] = [
  ["lock", 12],
  ["fairLock", 4],
  ["lock of a shared name", 1],
  ["fairLock of a shared name", 1],
  ["read", 3],
  ["write", 3],
  ["fair read", 1],
  ["fair write", 1],
  ["semaphore", 4],
  ["fair semaphore", 2],
  ["spinLock", 1],
  ["redissonLock", 1],
  ["redissonFencedLock", 1],
];
const ALL = WEIGHTS.flatMap(([name, weight]) => Array<KindName>(weight).fill(name));
/** Kinds that share their locks. */
const TOGETHER: readonly (readonly KindName[])[] = [
  ["lock"],
  ["fairLock"],
  ["lock of a shared name", "fairLock of a shared name"],
  ["read", "write"],
  ["fair read", "fair write"],
  ["semaphore"],
  ["fair semaphore"],
  ["redissonLock"],
  ["redissonFencedLock"],
];

/** The kinds that a run's callers take: all, or a few, which then have more callers. */
export const kindsOf = ({ dice }: Run): readonly KindName[] =>
  dice.chance(0.4) ? ALL : [...dice.one(TOGETHER), ...(dice.chance(0.5) ? dice.one(TOGETHER) : [])];
/** In ms: those that leave together do it at a multiple of this. */
const HOUR = 20;
/** In ms: an explicit lease. */
const FIXED_LEASE = 1_000;
const ABORTED = "the caller's signal aborted";

/** How a caller spends a run. */
export type Way = (run: Run, member: Member, plan: Plan) => Promise<void>;

/** What the callers of a run take, and until when. */
export interface Plan {
  readonly names: readonly string[];
  readonly kinds: readonly KindName[];
  /** What each caller does with them: one of these. */
  readonly ways: readonly Way[];
  readonly end: number;
}

/** A caller that takes something at random, holds it, and gives it back, until `end`. */
export async function wander(run: Run, member: Member, plan: Plan): Promise<void> {
  const { names, end } = plan;
  const { dice, time } = run;
  const { process } = member;
  // Some come back at once, and some leave together with others.
  const isEager = dice.chance(0.25);
  const isPunctual = dice.chance(0.3);
  while (run.goesOnIn(member)) {
    const isBack = isEager && dice.chance(0.5);
    if (!isBack) await process.sleep(dice.chance(0.3) ? 1 : dice.between(1, 400));
    if (time.now >= end || process.isDead) return;
    const kindName = dice.one(plan.kinds);
    const kind = kinds[kindName];
    const isFixed = dice.chance(0.2);
    const isTry = dice.chance(0.1);
    const wait = isTry
      ? null
      : dice.chance(0.3)
        ? dice.whole(0, dice.chance(0.5) ? 1_500 : 8_000)
        : Number.POSITIVE_INFINITY;
    const controller = dice.chance(0.08) && !isTry ? new AbortController() : undefined;
    const request: Request = {
      member,
      kindName,
      kind,
      name: `${kind.family}:${dice.one(names)}`,
      units: kind.mode === "permits" ? dice.whole(1, PERMITS) : 1,
      wait,
      isFixed: isFixed && !isTry,
      since: time.now,
      controller,
      abortedAt: Number.POSITIVE_INFINITY,
    };
    if (controller) process.timers.setTimeout(() => abort(run, request), dice.between(0, 500));
    const holding = await ask(run, request);
    if (!holding) continue;
    const work = dice.chance(0.3) ? 0 : dice.chance(0.9) ? dice.between(1, 60) : dice.between(60, 4_000);
    const until = time.now + (isFixed ? Math.min(work, 2_500) : work);
    const hour = isPunctual ? Math.ceil(until / HOUR) * HOUR : until;
    if (work > 0 && dice.chance(0.2)) {
      await process.sleep(dice.between(0, hour - time.now));
      if (!process.isDead) await extend(run, holding);
    }
    if (hour > time.now && work > 0) await process.sleep(hour - time.now);
    if (process.isDead) return;
    // The next call may come before the answer to this one.
    const left = giveBack(run, holding);
    if (dice.chance(0.7)) await left;
    else run.goesOn(member, left);
  }
}

/** Asks, and checks the outcome. Returns null without a lease. */
export async function ask(
  run: Run,
  request: Request,
  client: LockClient = request.member.client,
): Promise<Holding | null> {
  const outcome = await take(run, request, request.controller?.signal ?? null, client);
  if (outcome === null || "lease" in outcome) return outcome;
  count(run, request, outcome.error);
  return null;
}

/** Counts how a call ended without a lease; an error that it must not have fails the run. */
function count(run: Run, { member, kindName, name }: Request, error: unknown): void {
  const why = error === null ? "busy" : codeOf(error);
  if (why === "busy") run.counts.busy++;
  else if (why === "LOCK_TIMEOUT") run.counts.timeouts++;
  else if (why === ABORTED) run.counts.aborted++;
  else if (why === "LOCK_UNAVAILABLE") run.counts.unavailable++;
  else if (why === "CLIENT_CLOSED" && run.isClosing(member)) run.counts.closed++;
  else run.fail(`${kindName} ${name}: ${(error as Error).stack}`);
}

/** A call ended without a lease: tells the checks, and counts it. */
export function refuse(run: Run, request: Request, error: unknown): void {
  refused(run, request, error);
  count(run, request, error);
}

/** Asks, and tells the checks. Returns the error without a lease; null: its process has crashed. */
export async function take(
  run: Run,
  request: Request,
  signal: AbortSignal | null,
  client: LockClient = request.member.client,
  more: LockOptions = {},
): Promise<Holding | { readonly error: unknown } | null> {
  const { member, kind, kindName, name, units, wait, isFixed } = request;
  const { process } = member;
  run.requests.add(request);
  run.story.tell(process.name, `asks for ${kindName} ${name}${wait === null ? " at once" : ""}`);
  for (const check of run.checks) check.asked?.(request);
  const lease = isFixed ? FIXED_LEASE : null;
  let got: Holding["lease"] | null = null;
  let error: unknown = null;
  try {
    got = await kind.take(process.product, client, name, { wait, lease, signal, units, more });
  } catch (caught) {
    error = caught ?? new Error("thrown: nothing");
  }
  run.requests.delete(request);
  if (process.isDead) return null;
  if (got !== null) return enter(run, request, got);
  refused(run, request, error);
  return { error };
}

function refused({ story, checks }: Run, request: Request, error: unknown): void {
  const { member, kindName, name } = request;
  const why = error === null ? "busy" : codeOf(error);
  story.tell(member.process.name, `does not get ${kindName} ${name}: ${why}`);
  for (const check of checks) check.refused?.(request, error);
}

/** The caller has a lease: tells the checks. */
export function enter(run: Run, request: Request, lease: Holding["lease"]): Holding {
  const { member, kindName, name, scope } = request;
  // Not a copy: an abort is recorded in the request.
  const holding: Holding = Object.assign(request, { lease, isLeaving: false });
  run.counts.acquired++;
  run.story.tell(member.process.name, `has ${kindName} ${name}, ${tokenOf(holding)}`);
  const isReentry = scope && run.inside(name).some((one) => one.scope === scope);
  if (lease.held) {
    const holdings = run.holdings.get(name) ?? new Set();
    run.holdings.set(name, holdings.add(holding));
  }
  if (!isReentry) for (const check of run.checks) check.entered?.(holding, request);
  return holding;
}

export async function giveBack(run: Run, holding: Holding): Promise<void> {
  countLoss(run, holding, await leave(run, holding));
}

function countLoss(run: Run, { kindName, name }: Holding, error: unknown): void {
  if (error === null) return;
  if (codeOf(error) === "LOCK_LOST") run.counts.lost++;
  else if (codeOf(error) === "LOCK_UNAVAILABLE") run.counts.unavailable++;
  else run.fail(`giving ${kindName} ${name} back: ${(error as Error).stack}`);
}

/** Gives it back, and tells the checks. Returns the error of that, or null. */
export async function leave(run: Run, holding: Holding): Promise<unknown> {
  const { member, lease } = holding;
  // A listener may have done it.
  if (holding.isLeaving) return null;
  leaving(run, holding);
  let error: unknown = null;
  try {
    await ("release" in lease ? lease.release() : lease.unlock());
  } catch (caught) {
    error = caught;
  }
  if (member.process.isDead) return null;
  left(run, holding, error);
  return error;
}

/** It is about to be given back. */
export function leaving(run: Run, holding: Holding): void {
  const { member, kindName, name } = holding;
  for (const check of run.checks) check.leaving?.(holding);
  holding.isLeaving = true;
  run.leaving.add(holding);
  run.holdings.get(name)?.delete(holding);
  run.story.tell(member.process.name, `gives ${kindName} ${name} back`);
}

/** It was given back, with this error or null. */
function left(run: Run, holding: Holding, error: unknown): void {
  const { member, kindName, name } = holding;
  run.leaving.delete(holding);
  if (error !== null)
    run.story.tell(member.process.name, `giving ${kindName} ${name} back fails: ${codeOf(error)}`);
  for (const check of run.checks) check.left?.(holding, error);
}

/** It was given back together with others. */
export function leftTogether(run: Run, holding: Holding, error: unknown): void {
  left(run, holding, error);
  countLoss(run, holding, error);
}

/** Makes the lease last longer, and tells the checks; a term has no `extend()`. */
async function extend(run: Run, holding: Holding): Promise<void> {
  const { member, kindName, name, lease } = holding;
  const { process } = member;
  if (!("extend" in lease) || holding.isLeaving) return;
  const ms = run.dice.whole(100, member.leaseTime);
  const extension: Extension = { holding, ms, since: run.time.now, wasHeld: lease.held };
  run.story.tell(process.name, `extends ${kindName} ${name} to ${ms} ms`);
  let error: unknown = null;
  try {
    await lease.extend(ms);
  } catch (caught) {
    error = caught;
  }
  if (process.isDead) return;
  if (error !== null) run.story.tell(process.name, `extending ${kindName} ${name} fails: ${codeOf(error)}`);
  for (const check of run.checks) check.extended?.(extension, error);
}

/** Aborts the signal of a call that waits. Returns whether it has one. */
export function abort(run: Run, request: Request): boolean {
  if (!request.controller || request.controller.signal.aborted) return false;
  request.abortedAt = run.time.now;
  request.controller.abort(new Error(ABORTED));
  return true;
}

export const isAbort = (error: unknown): boolean => (error as Error | null)?.message === ABORTED;

export const codeOf = (error: unknown): string =>
  (error as { code?: string } | null)?.code ?? (error as Error | null)?.message ?? String(error);

const tokenOf = ({ lease }: Holding): string => ("token" in lease ? `token ${lease.token}` : "no token");
