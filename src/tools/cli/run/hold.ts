import type { Lock, LockClient, LockOptions } from "../../../index.ts";
import { clientOf } from "../../../inside.ts";
import type { Held } from "./guard.ts";
import type { RunPlan, Wanted } from "./plan.ts";

/** Acquired for the command. */
export interface Acquired extends Held {
  /** The locks that it runs under. Without a token: permits. */
  readonly held: readonly Fenced[];
  /**
   * Aborts when another caller waits. Reading it subscribes the client, so that it is notified of a
   * force-release at once.
   */
  readonly wanted: AbortSignal;
  extend(ms: number): Promise<void>;
  leave(): Promise<void>;
}

/** The lock of a name that is wanted. */
export function lockOf(locks: LockClient, name: string, wanted: Extract<Wanted, { fair: boolean }>): Lock {
  if (wanted.kind === "lock") return wanted.fair ? locks.fairLock(name) : locks.lock(name);
  return locks.readWriteLock(name, { fair: wanted.fair })[wanted.kind];
}

/** @throws LockTimeoutError if another process holds it; the errors of `lock()`. */
export async function acquire(
  locks: LockClient,
  { names, wanted, wait }: RunPlan & { readonly wanted: Exclude<Wanted, { kind: "once" }> },
  signal: AbortSignal,
): Promise<Acquired> {
  const options: LockOptions = { wait, signal };
  if (wanted.kind === "permit") {
    const lease = await locks.semaphore(names[0], { permits: wanted.slots }).acquire(1, options);
    return acquired(lease, () => lease.release(), [{ name: lease.name }]);
  }
  const all = names.map((name) => lockOf(locks, name, wanted));
  const [only] = all;
  if (only && all.length === 1) {
    const lease = await only.lock(options);
    return acquired(lease, () => lease.unlock(), [lease]);
  }
  const lease = await locks.multiLock(all).lock(options);
  const held = names.map((name) => ({ name, token: lease.tokens.get(name) }));
  return acquired(lease, () => lease.unlock(), held);
}

function acquired(
  lease: Omit<Acquired, "held" | "leave">,
  leave: () => Promise<void>,
  held: readonly Fenced[],
): Acquired {
  return {
    held: held.map(({ name, token }) => ({ name, token })),
    signal: lease.signal,
    wanted: lease.wanted,
    get remaining() {
      return lease.remaining;
    },
    extend: (ms) => lease.extend(ms),
    leave,
  };
}

/**
 * The lock that a command runs under, for commands inside it. A lock is identified by the token of
 * its hold, permits by the client.
 */
export type Inherited = { readonly name: string } & (
  | { readonly kind: "lock" | "read" | "write" | "election"; readonly token: number }
  | { readonly kind: "permit"; readonly client: string }
);

/** What is held. Without a token: permits. */
export interface Fenced {
  readonly name: string;
  readonly token?: number | undefined;
}

/** `client`: the id of the client that holds them. */
export const inheritable = (
  kind: Exclude<Inherited["kind"], "election">,
  held: readonly Fenced[],
  client: string,
): Inherited[] =>
  held.map(({ name, token = 0 }) => (kind === "permit" ? { kind, name, client } : { kind, name, token }));

/** A command's environment: the names and tokens, one a line, and all that is held around it. */
export function environmentOf(
  held: readonly Fenced[],
  lease: number,
  all: readonly Inherited[],
): Record<string, string | undefined> {
  const tokens = held.flatMap(({ token = [] }) => token);
  return {
    HOLDFAST_LOCK: held.map(({ name }) => name).join("\n"),
    // Permits have none; and an enclosing run's token is for another name.
    HOLDFAST_TOKEN: tokens.length > 0 ? tokens.join("\n") : undefined,
    HOLDFAST_LEASE_MS: String(lease),
    HOLDFAST_HOLD: JSON.stringify(all),
  };
}

/** What the enclosing runs hold. Any other text counts as nothing. */
export function inheritedFrom(text = process.env.HOLDFAST_HOLD): Inherited[] {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(list) ? list.filter(isInherited) : [];
  } catch {
    return [];
  }
}

function isInherited(one: unknown): one is Inherited {
  if (typeof one !== "object" || one === null) return false;
  const { kind, name, token, client } = one as Record<string, unknown>;
  const isKnown = kind === "permit" ? typeof client === "string" : typeof token === "number";
  return typeof kind === "string" && typeof name === "string" && isKnown;
}

/** Would a run that wants this wait forever for an enclosing run that has it? */
export const conflicts = (wanted: Wanted["kind"], held: Inherited["kind"]): boolean =>
  wanted === held || (wanted === "read" && held === "write") || (wanted === "write" && held === "read");

/** May it run under what the enclosing run holds? */
export const covers = (wanted: Wanted["kind"], held: Inherited["kind"]): boolean =>
  (wanted === held && wanted !== "permit") || (wanted === "read" && held === "write");

/**
 * Is it still held, in this Redis? Token and client show that: one host has several names, and one
 * name several hosts. A process that a command leaves running, such as a terminal multiplexer,
 * keeps its environment, and must not inherit a lock that has long had another holder.
 */
export async function isStillHeld(locks: LockClient, one: Inherited): Promise<boolean> {
  const { name } = one;
  switch (one.kind) {
    case "lock":
      return (await locks.lock(name).inspect()).token === one.token;
    case "read":
    case "write":
      return (await locks.readWriteLock(name).inspect()).holders.some((holder) => holder.token === one.token);
    case "permit":
      return (await locks.semaphore(name).inspect()).holders.some(
        (holder) => clientOf(holder) === one.client,
      );
    case "election":
      return (await locks.election(name).leader())?.token === one.token;
  }
}
