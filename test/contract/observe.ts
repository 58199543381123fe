import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { onTestFinished, vi } from "vitest";
import {
  type Lease,
  type Lock,
  type LockClient,
  LockError,
  type LockEvents,
  LockLostError,
  type LossReason,
} from "../../src/index.ts";
import type { Party } from "../support/fixture.ts";
import { linkOf } from "../support/link.ts";
import { holdReply, onScript } from "../support/scripts-sent.ts";
import { until } from "../support/until.ts";

const EVENTS = ["acquire", "wait", "giveup", "release", "renew", "lost", "error"] as const;

type Told = { [K in (typeof EVENTS)[number]]: Parameters<LockEvents[K]>[0][] };

/** All that a client tells from now on. */
export function record(locks: LockClient): Told {
  const told: Told = { acquire: [], wait: [], giveup: [], release: [], renew: [], lost: [], error: [] };
  for (const event of EVENTS)
    locks.on(event, (detail: unknown) => void (told[event] as unknown[]).push(detail));
  return told;
}

/** The same of these locks alone, to the end of the test; an error that names no lock counts. */
export function recordOf(locks: LockClient, names: readonly string[]): Told {
  const told: Told = { acquire: [], wait: [], giveup: [], release: [], renew: [], lost: [], error: [] };
  for (const event of EVENTS) {
    const listener = (detail: { name?: string; lockName?: string | null }) => {
      const name = event === "error" ? (detail.lockName ?? null) : (detail.name ?? null);
      if (name === null || names.includes(name)) (told[event] as unknown[]).push(detail);
    };
    locks.on(event, listener);
    onTestFinished(() => void locks.off(event, listener));
  }
  return told;
}

/** Counts what one party's clients send: commands on its connection, and connections beside it. */
export function watchTraffic({ redis }: Party): { readonly commands: number; readonly connections: number } {
  const link = linkOf(redis);
  const commands = [vi.spyOn(link, "send"), vi.spyOn(link, "command")];
  const connections = [vi.spyOn(link, "listen"), vi.spyOn(link, "open"), vi.spyOn(link, "openOnce")];
  onTestFinished(() => {
    for (const spy of [...commands, ...connections]) spy.mockRestore();
  });
  const count = (spies: readonly { mock: { calls: unknown[] } }[]): number =>
    spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  return {
    get commands() {
      return count(commands);
    },
    get connections() {
      return count(connections);
    },
  };
}

/** The warnings of this package from now to the end of the test. */
export function warnings(): (Error & { code?: string })[] {
  const seen: (Error & { code?: string })[] = [];
  const listener = (warning: Error) => {
    if (warning.name === "HoldfastWarning") seen.push(warning);
  };
  process.on("warning", listener);
  onTestFinished(() => void process.off("warning", listener));
  return seen;
}

/** Counts who is inside a critical section. */
export class Section {
  /** The most that were inside at one time: 1 under a lock. */
  most = 0;
  visits = 0;
  #inside = 0;

  readonly visit = async (): Promise<void> => {
    this.most = Math.max(this.most, ++this.#inside);
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    this.#inside--;
    this.visits++;
  };
}

/** A promise that a test opens by hand. */
export class Gate {
  readonly passed: Promise<void>;
  open: () => void = () => {};

  constructor() {
    this.passed = new Promise((resolve) => {
      this.open = resolve;
    });
  }
}

/** Keeps the answer to the next script until the gate opens. Resolves when Redis has executed it. */
export function holdAnswer(redis: Party["redis"], read: Gate): Promise<void> {
  const executed = new Gate();
  const restore = onScript(redis, (script, send) => {
    restore();
    holdReply(script, () => {
      executed.open();
      return read.passed;
    });
    send();
  });
  return executed.passed;
}

/**
 * Behind all timers that are due: a process that stood still for a moment reads replies before they
 * ring. This timer may be the first of them, because Node counts its time from the beginning of the
 * event loop's turn.
 */
export const timersRing = (): Promise<void> => sleep(1).then(() => nextTurn());

/** Resolves with what a promise rejects with; rejects when it does not. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  const none = Symbol();
  const error = await promise.then(
    () => none,
    (error: unknown) => error,
  );
  if (error === none) throw new Error("Expected a rejection, but it resolved");
  return error;
}

/**
 * A try that gets nothing where the machine stands still for longer than Redis may take to answer
 * it: 500 ms.
 */
export const tried = (lock: Lock): Promise<Lease | null> =>
  lock.tryLock().catch((error: unknown) => {
    if (error instanceof LockError && error.code === "LOCK_UNAVAILABLE") return null;
    throw error;
  });

/** Waits until a lease's signal aborts, and answers why. */
export async function lossOf(signal: AbortSignal): Promise<LossReason> {
  await until(() => signal.aborted, { what: "the lease's signal to abort" });
  if (signal.reason instanceof LockLostError) return signal.reason.reason;
  throw new Error(`The signal aborted with ${signal.reason}`);
}
