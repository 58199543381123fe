import type { LockClient } from "../../index.ts";
import { clientOf } from "../../inside.ts";
import type { Wanted } from "./plan.ts";

/** What a command runs under, as those inside it are told. Of a lock its token says which hold it is, of permits their client. */
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

/** What a command finds in its environment: the names and tokens one a line, and all that is held around it. */
export function environmentOf(
  held: readonly Fenced[],
  lease: number,
  all: readonly Inherited[],
): Record<string, string | undefined> {
  const tokens = held.flatMap(({ token = [] }) => token);
  return {
    HOLDFAST_LOCK: held.map(({ name }) => name).join("\n"),
    // Of permits none, and not that of a run around this one, which is of another name.
    HOLDFAST_TOKEN: tokens.length > 0 ? tokens.join("\n") : undefined,
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

function isInherited(one: unknown): one is Inherited {
  if (typeof one !== "object" || one === null) return false;
  const { kind, name, token, client } = one as Record<string, unknown>;
  const isKnown = kind === "permit" ? typeof client === "string" : typeof token === "number";
  return typeof kind === "string" && typeof name === "string" && isKnown;
}

/** What a run that wants this would wait for in vain, where a run around it has it. */
export const conflicts = (wanted: Wanted["kind"], held: Inherited["kind"]): boolean =>
  wanted === held || (wanted === "read" && held === "write") || (wanted === "write" && held === "read");

/** May it run under what the run around it holds? */
export const covers = (wanted: Wanted["kind"], held: Inherited["kind"]): boolean =>
  (wanted === held && wanted !== "permit") || (wanted === "read" && held === "write");

/**
 * Is it held still, in this Redis? Token and client tell that: one host has several names, and one name several hosts. What a command leaves running, such as a terminal multiplexer, keeps its environment for ever, and must not
 * hand a lock on that has long been another's.
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
