import type { Inspected, Listed, LockClient } from "../../index.ts";
import { inspectRun } from "../../inside.ts";
import { redissonLock } from "../../redisson.ts";
import { quoteWhole } from "../../util/quote.ts";
import { EXIT, ExitError, judge } from "./exit-codes.ts";

type Kind = Listed["kind"];

/** One lock's state. */
export interface Looked extends Listed {
  /** The leader's published value; null: it is no leader, or another one leads by now. */
  readonly value: string | null;
}

/**
 * The kinds inspected if none is named: a `redissonLock` has the bare name as its key, which may be
 * anything.
 */
const KINDS: readonly Kind[] = ["lock", "readWrite", "semaphore", "election", "remember"];

/**
 * The locks of these kinds with this name: one command for each, however many keys there are. A user
 * may lack the rights for some kinds: then locks of the others are an answer, and none is not.
 *
 * @throws ExitError: none was found, and some kinds could not be looked at
 */
export async function lookAt(locks: LockClient, name: string, kind: Kind | undefined): Promise<Looked[]> {
  const kinds = kind ? [kind] : KINDS;
  const looked = await Promise.allSettled(kinds.map((one) => LOOKS[one](locks, name)));
  const found = looked.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  const failures = looked.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (found.length > 0 || failures.length === 0) return found;
  if (failures.length === looked.length) throw failures[0];
  const [free, unknown] = (["fulfilled", "rejected"] as const).map((status) =>
    kinds.filter((_, i) => looked[i]?.status === status).join(" or "),
  );
  throw new ExitError(
    EXIT.unavailable,
    `No ${free} has the name ${quoteWhole(name)}, and whether a ${unknown} has it is unknown (--kind looks at one kind alone): ${judge(failures[0]).message}`,
  );
}

type Look = (locks: LockClient, name: string) => Promise<Looked[]>;

const exclusive =
  (kind: Kind, inspect: (locks: LockClient, name: string) => Promise<Inspected>): Look =>
  async (locks, name) => {
    const { holder, waiters, kept } = await inspect(locks, name);
    return shown({ kind, name, holders: holder ? [holder] : [], waiters, kept, permits: null });
  };

const LOOKS: Readonly<Record<Kind, Look>> = {
  lock: exclusive("lock", (locks, name) => locks.lock(name).inspect()),
  redisson: exclusive("redisson", (locks, name) => redissonLock(locks, name).inspect()),
  remember: exclusive("remember", inspectRun),
  readWrite: async (locks, name) => {
    const { holders, waiters, kept } = await locks.readWriteLock(name).inspect();
    return shown({ kind: "readWrite", name, holders, waiters, kept, permits: null });
  },
  semaphore: async (locks, name) => {
    const { permits, holders, waiters } = await locks.semaphore(name).inspect();
    return shown({ kind: "semaphore", name, holders, waiters, kept: false, permits });
  },
  // Candidates are only visible in its keys, which the list can find.
  election: async (locks, name) => {
    const pattern = name.replace(/[*?[\]\\]/g, "\\$&");
    const leader = await locks.election(name).leader();
    if (leader === null) return [];
    const found: Looked[] = [];
    for await (const one of locks.list({ match: pattern, kind: "election" })) {
      // RACE: the lead may have changed between the two answers: then this value would be shown
      // with another leader.
      const isSame = one.holder?.token === leader.token;
      found.push({ ...one, value: isSame ? leader.value : null });
    }
    return found;
  },
};

function shown({ holders, waiters, ...rest }: Omit<Listed, "holder" | "heldFor" | "remaining">): Looked[] {
  if (holders.length === 0 && !waiters?.length) return [];
  const sorted = [...holders].sort((a, b) => (b.heldFor ?? 0) - (a.heldFor ?? 0));
  const [holder = null] = sorted;
  const { heldFor, remaining } = holder ?? { heldFor: null, remaining: null };
  return [{ ...rest, holders: sorted, holder, heldFor, remaining, waiters, value: null }];
}
