import type { DeadlockError, LockClient } from "../../src/index.ts";
import { freshName, type Party } from "./fixture.ts";
import { until } from "./until.ts";

/** The key of the notes about what callers wait for. */
export const NOTES = "holdfast:waits";

/** Notes of scopes that hold these locks. */
export async function notesOf(party: Party | undefined, names: readonly string[]): Promise<string[]> {
  const notes = (await party?.redis.zrange(NOTES, "0", "-1")) ?? [];
  return notes.filter((note) =>
    names.some((name) => note.startsWith(`handoff:${encodeURIComponent(name)} `)),
  );
}

export const leftOf = async (party: Party | undefined, names: readonly string[]): Promise<number> =>
  (await notesOf(party, names)).length;

/** The reports of deadlocks, and whether the client's caller was rejected. */
export function listen(...all: LockClient[]): { name: string; rejected: boolean; cycle: string[] }[] {
  const told: { name: string; rejected: boolean; cycle: string[] }[] = [];
  for (const locks of all)
    locks.on("deadlock", ({ name, rejected, cycle }) =>
      told.push({ name, rejected, cycle: cycle.map((link) => link.name) }),
    );
  return told;
}

/**
 * A body that holds the first lock, and requests the second when `go` says so. "both": it got both;
 * otherwise its error's code.
 */
export async function chain(
  locks: LockClient,
  first: string,
  second: string,
  go: Promise<unknown>,
  signal?: AbortSignal,
) {
  const nested = () => locks.lock(second).withLock({ signal }, () => "both");
  const body = async () => {
    await go;
    return nested();
  };
  return locks
    .lock(first)
    .withLock(body)
    .catch((error: DeadlockError) => error);
}

/** Callers that hold one name each, and want the next one's. */
export function circle(clients: readonly LockClient[], signal?: AbortSignal) {
  const names = clients.map(() => freshName());
  const held = Promise.all(names.map((name, i) => until(() => clients[i]?.lock(name).isLocked())));
  const outcomes = clients.map((locks, i) =>
    chain(locks, names[i] ?? "", names[(i + 1) % names.length] ?? "", held, signal),
  );
  return { names, outcomes };
}

export const codes = (outcomes: readonly unknown[]): unknown[] =>
  outcomes.map((one) => (one instanceof Error && "code" in one ? one.code : one)).sort();
