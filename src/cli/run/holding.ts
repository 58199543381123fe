import type { LockClient } from "../../index.ts";
import type { Wanted } from "./plan.ts";

/** What a command runs under, as those inside it are told. */
export interface Inherited {
  readonly kind: "lock" | "read" | "write" | "permit" | "election";
  readonly name: string;
  readonly token: number;
}

/** What a command finds in its environment: the names and tokens one a line, and all that is held around it. */
export function environmentOf(
  held: readonly { readonly name: string; readonly token: number }[],
  lease: number,
  all: readonly Inherited[],
): Record<string, string> {
  return {
    HOLDFAST_LOCK: held.map(({ name }) => name).join("\n"),
    HOLDFAST_TOKEN: held.map(({ token }) => token).join("\n"),
    HOLDFAST_LEASE_MS: String(lease),
    HOLDFAST_HOLD: JSON.stringify(all),
  };
}

/** What the runs around this one hold. Whatever else stands there is nothing. */
export function inheritedFrom(text = process.env.HOLDFAST_HOLD): Inherited[] {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(list) ? list.filter(isInherited) : [];
  } catch {
    return [];
  }
}

const isInherited = (one: unknown): one is Inherited =>
  typeof one === "object" &&
  one !== null &&
  ["kind", "name"].every((key) => typeof (one as Record<string, unknown>)[key] === "string") &&
  typeof (one as { token?: unknown }).token === "number";

/** What a run that wants this would wait for in vain, where a run around it has it. */
export const conflicts = (wanted: Wanted["kind"], held: Inherited["kind"]): boolean =>
  wanted === held || (wanted === "read" && held === "write") || (wanted === "write" && held === "read");

/** May it run under what the run around it holds? */
export const covers = (wanted: Wanted["kind"], held: Inherited["kind"]): boolean =>
  (wanted === held && wanted !== "permit") || (wanted === "read" && held === "write");

/**
 * Is it held still, in this Redis? The token tells that: one host has several names, and one name several hosts. What a command leaves running, such as a terminal multiplexer, keeps its environment for ever, and must not
 * hand a lock on that has long been another's.
 */
export async function isStillHeld(locks: LockClient, { kind, name, token }: Inherited): Promise<boolean> {
  switch (kind) {
    case "lock":
      return (await locks.lock(name).inspect()).token === token;
    case "read":
    case "write":
      return (await locks.readWriteLock(name).inspect()).holders.some((holder) => holder.token === token);
    case "permit":
      // Permits show no token; a hold's token is the time since when it is held.
      return (await locks.semaphore(name).inspect()).holders.some(
        ({ since }) => since === Math.floor(token / 1_000),
      );
    case "election":
      return (await locks.election(name).leader())?.token === token;
  }
}
