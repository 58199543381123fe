// What else a scope that reads or writes may do. Protects a scope from waiting for itself: a writer
// waits for all readers, and so for its own scope if that reads.
import { LockError } from "../api/errors.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { Terms } from "../core/lease/terms.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { quote } from "../util/quote.ts";
import type { Holding } from "./holding.ts";
import { keyOf } from "./holding.ts";
import type { Scopes } from "./scopes.ts";

/**
 * The key of a reader in a scope that writes: it is separate from the writer, which may leave
 * first.
 */
export const besideKey = (protocol: LockKind["protocol"], name: string): string =>
  `${keyOf(protocol, name)}\0read`;

/**
 * The holding that a call may enter of a lock that its scopes hold by any of its kinds.
 * `isReentrant` false: none; and a scope does not find a hold that others may not enter
 * (`Scope.hold`). If the scopes read inside a writer's lease, a caller that wants to write gets the
 * writer.
 *
 * @throws LockError LOCK_UPGRADE
 */
export function holdingFor(
  scopes: Scopes,
  { protocol, mode }: LockKind,
  name: string,
  isReentrant: boolean,
): Holding | null {
  if (!isReentrant) return null;
  const own = scopes.find(keyOf(protocol, name));
  if (mode === undefined) return own;
  const holding = own ?? scopes.find(besideKey(protocol, name));
  return mode === "write" && holding ? toWrite(holding) : holding;
}

/**
 * Do the caller's scopes hold a lock, whether or not calls may enter it? A scope that only reads
 * does not hold the write lock.
 */
export function isHeldIn(scopes: Scopes, { protocol, mode }: LockKind, name: string): boolean {
  const fits = mode === "write" ? isWriting : isHeld;
  return (
    scopes.holds(keyOf(protocol, name), fits) ||
    (mode !== undefined && scopes.holds(besideKey(protocol, name), fits))
  );
}

const isHeld = ({ held }: SharedLease): boolean => held;
const isWriting = ({ held, owner }: SharedLease): boolean =>
  owner.kind.mode === "read" ? (owner.writer?.held ?? false) : held;

/** @throws LockError LOCK_UPGRADE when its scope only reads. */
export function toWrite(holding: Holding): Holding {
  const { name, owner } = holding.shared;
  if (owner.kind.mode !== "read") return holding;
  const writer = owner.writer ?? null;
  if (!writer || writer.ended) throw upgrade(name);
  return holding.of(writer);
}

/** Must bodies in it run one after the other? Readers alone run side by side. */
export const isGated = ({ owner }: SharedLease): boolean =>
  owner.kind.mode !== "read" || (owner.writer !== null && owner.writer !== undefined && !owner.writer.ended);

/**
 * Must a call of this kind that may not enter it wait for its end? Only readers run side by side.
 */
export const isInTheWay = ({ mode }: LockKind, shared: SharedLease): boolean =>
  shared.held && (mode !== "read" || isGated(shared));

/** Must a call that may not enter a lock wait for its own scopes? */
export function isInTheWayOf(scopes: Scopes, kind: LockKind, name: string): boolean {
  const fits = (shared: SharedLease): boolean => isInTheWay(kind, shared);
  return (
    scopes.holds(keyOf(kind.protocol, name), fits) ||
    (kind.mode === "write" && scopes.holds(besideKey(kind.protocol, name), fits))
  );
}

/** Is it a reader's call in a scope that writes? Then it gets its own lease. */
export const isInside = ({ mode }: LockKind, { owner }: SharedLease): boolean =>
  mode === "read" && owner.kind.mode === "write";

/** A lease for a reader in a scope that writes, which may outlive the writer's. */
export function readInside(lease: SharedLease, terms: Terms): SharedLease {
  const read = lease.owner.readInside?.(lease, terms);
  if (!read) throw new TypeError("a writer's lease without readers");
  return read;
}

const upgrade = (name: string): LockError =>
  new LockError(
    "LOCK_UPGRADE",
    name,
    `Read-write lock ${quote(name)} cannot be written in a scope that reads it: it would wait for itself, and two such scopes for each other; ` +
      "unlock the read lock first and then read again, or take the write lock from the start.",
  );
