// What the other entry points and the tools may use of the package in addition to the public
// exports. First, the inside of a client, for entry points that make their own kinds of locks.
// Second, re-exported types and functions that know no client, for tools that show locks as
// messages do. A tool that needs more needs a reason in test/unit/architecture.test.ts.

import type { LockClient } from "./api/client.ts";
import type { Inspected, Lock } from "./api/lock.ts";
import type { Settings } from "./api/options.ts";
import { show } from "./api/validate.ts";
import type { LockKind } from "./core/lock-kind.ts";
import type { LockSettings } from "./locks/arguments.ts";
import type { Commands } from "./redis/commands.ts";
import { linkTo } from "./redis/drivers.ts";
import type { Replication } from "./redis/replication.ts";

export type { CommonClient } from "./api/client.ts";
export { showParty } from "./api/party.ts";
export { renamedCommand } from "./api/renamed.ts";
export { NAME_BYTES_MAX } from "./defaults.ts";
export { Glob } from "./list/glob.ts";
export { type Circle, circleOf, holdersOf, KINDS as NOTED_KINDS } from "./locks/deadlocks/circle.ts";
export { decodeNote, lockOf as lockOfNote, type Note } from "./locks/deadlocks/note.ts";
export type { Link } from "./redis/driver.ts";
export { linkTo, noConnection } from "./redis/drivers.ts";
export { infoField, listOf, memoryUse } from "./redis/fields.ts";
export { clientOf, isStandby, partyOfClient, waitingProcesses } from "./redis/party.ts";
export { operatorsReason } from "./redis/trouble.ts";

/** What an entry point that makes its own kinds of locks uses of a client. */
export interface Inside {
  readonly commands: Commands;
  readonly replication: Replication | null;
  readonly settings: Settings;
  readonly lockOf: (name: string, kind: LockKind, how?: LockSettings) => Lock;
  readonly inspectRun: (name: string) => Promise<Inspected>;
}

/**
 * For every client that this copy of the package has made. Null: a quorum's client, which has only
 * its own kinds.
 */
const insides = new WeakMap<object, Inside | null>();

/** The option `prefix` of these clients. */
const prefixes = new WeakMap<object, string>();

export function hasInside(client: object, inside: Inside): void {
  insides.set(client, inside);
  prefixes.set(client, inside.settings.prefix);
}

export function hasNoInside(client: object, { prefix }: Pick<Settings, "prefix">): void {
  insides.set(client, null);
  prefixes.set(client, prefix);
}

/** For tools, whose keys are beside those of the client. */
export const prefixOf = (client: object): string => prefixes.get(client) ?? "";

/**
 * The result of `make` for a client, made at the first use and then always the same: callers of one
 * process queue by the kind object, so two of them for one client would have two queues, and two
 * re-entrant holds, for one lock.
 */
export function perClient<K>(make: (inside: Inside) => K): (inside: Inside) => K {
  const made = new WeakMap<Inside, K>();
  return (inside) => {
    let one = made.get(inside);
    if (one === undefined) {
      one = make(inside);
      made.set(inside, one);
    }
    return one;
  };
}

/**
 * The inside of a client of `createLockClient` or `createTestLocks`. `call`: the caller's call, for messages.
 *
 * @throws TypeError for anything else.
 */
export function insideOf(locks: unknown, call: string): Inside {
  const inside = isObject(locks) ? insides.get(locks) : undefined;
  if (inside) return inside;
  throw new TypeError(
    `Cannot create a lock: ${call} takes a client of createLockClient(), ${received(locks)}`,
  );
}

/** The run of `remember(name)` that is under way, and what waits for it: one command. */
export const inspectRun = (locks: LockClient, name: string): Promise<Inspected> =>
  insideOf(locks, "inspectRun(locks, name)").inspectRun(name);

function received(locks: unknown): string {
  if (isObject(locks) && insides.has(locks))
    return "and this one is of createQuorumClient(), whose locks are all of one kind";
  if (linkTo(locks)) return "received a Redis connection: give it to createLockClient() first";
  if (isObject(locks) && "lock" in locks && "close" in locks)
    return "and this one is a stand-in, or was made by another copy of holdfast: `npm ls holdfast` shows all copies";
  return `received ${show(locks)}`;
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
