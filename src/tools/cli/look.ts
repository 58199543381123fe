import type { Listed, Lock, LockClient, UnfencedLease } from "../../index.ts";
import { redissonLock } from "../../redisson.ts";

type Kind = Listed["kind"];

/** What there is to see of one lock. */
export interface Looked extends Listed {
  /** What the leader of an election proclaims; null: it is none, or has another leader by now. */
  readonly value: string | null;
}

/**
 * The kinds that are looked at where none is named: a `redissonLock` has the bare name as its key,
 * which may be anything.
 */
const KINDS: readonly Kind[] = ["lock", "readWrite", "semaphore", "election"];

/** What has this name, of these kinds: one command for each, however many keys there are. */
export async function lookAt(locks: LockClient, name: string, kind: Kind | undefined): Promise<Looked[]> {
  const looked = await Promise.allSettled((kind ? [kind] : KINDS).map((one) => LOOKS[one](locks, name)));
  const failures = looked.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  // A user may lack the rights of some kinds, and be asked about another one.
  if (failures.length === looked.length) throw failures[0];
  return looked.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
}

type Look = (locks: LockClient, name: string) => Promise<Looked[]>;

const exclusive =
  (kind: Kind, open: (locks: LockClient, name: string) => Lock<UnfencedLease>): Look =>
  async (locks, name) => {
    const { holder, waiters, kept } = await open(locks, name).inspect();
    return shown({ kind, name, holders: holder ? [holder] : [], waiters, kept, permits: null });
  };

const LOOKS: Readonly<Record<Kind, Look>> = {
  lock: exclusive("lock", (locks, name) => locks.lock(name)),
  redisson: exclusive("redisson", (locks, name) => redissonLock(locks, name)),
  readWrite: async (locks, name) => {
    const { holders, waiters, kept } = await locks.readWriteLock(name).inspect();
    return shown({ kind: "readWrite", name, holders, waiters, kept, permits: null });
  },
  semaphore: async (locks, name) => {
    const { permits, holders, waiters } = await locks.semaphore(name).inspect();
    return shown({ kind: "semaphore", name, holders, waiters, kept: false, permits });
  },
  // Candidates are only seen in its keys; the list knows where they are.
  election: async (locks, name) => {
    const pattern = name.replace(/[*?[\]\\]/g, "\\$&");
    const leader = await locks.election(name).leader();
    if (leader === null) return [];
    const found: Looked[] = [];
    for await (const one of locks.list({ match: pattern, kind: "election" })) {
      // RACE: the lead may have changed between the two answers, and this value would be shown
      // beside another leader.
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
