import type { Listed, ListedHolder, ListedWaiter, LockClient, Owner } from "../index.ts";
import { redissonLock } from "../redisson/index.ts";

type Kind = Listed["kind"];

/** The kinds that are looked at where none is named: a `redissonLock` has the bare name as its key, which may be anything. */
const KINDS: readonly Kind[] = ["lock", "readWrite", "semaphore", "election"];

/** What has this name, of these kinds: one command for each, however many keys there are. */
export async function lookAt(locks: LockClient, name: string, kind: Kind | undefined): Promise<Listed[]> {
  const looked = await Promise.allSettled((kind ? [kind] : KINDS).map((one) => LOOKS[one](locks, name)));
  const failures = looked.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  // A user may lack the rights of some kinds, and be asked about another one.
  if (failures.length === looked.length) throw failures[0];
  return looked.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
}

type Look = (locks: LockClient, name: string) => Promise<Listed[]>;

const exclusive =
  (kind: Kind, open: (locks: LockClient, name: string) => ReturnType<LockClient["lock"]>): Look =>
  async (locks, name) => {
    const { owner, token, remaining, queue, kept, at } = await open(locks, name).inspect();
    const holders = owner ? [holderOf(owner, { token, units: 1, mode: null, remaining }, at)] : [];
    return shown(
      kind,
      name,
      holders,
      queue.map((one) => waiterOf(one, 1, null, at)),
      { kept },
    );
  };

const LOOKS: Readonly<Record<Kind, Look>> = {
  lock: exclusive("lock", (locks, name) => locks.lock(name)),
  redisson: exclusive("redisson", (locks, name) => redissonLock(locks, name)),
  readWrite: async (locks, name) => {
    const { mode, holders, waiters, kept, at } = await locks.readWriteLock(name).inspect();
    return shown(
      "readWrite",
      name,
      holders.map(({ owner, token, remaining }) => holderOf(owner, { token, units: 1, mode, remaining }, at)),
      waiters.map(({ owner, mode }) => waiterOf(owner, 1, mode, at)),
      { kept },
    );
  },
  semaphore: async (locks, name) => {
    const { permits, holders, waiters, at } = await locks.semaphore(name).inspect();
    return shown(
      "semaphore",
      name,
      holders.map(({ owner, token, units, remaining }) =>
        holderOf(owner, { token, units, mode: null, remaining }, at),
      ),
      waiters.map(({ owner, units }) => waiterOf(owner, units, null, at)),
      { permits },
    );
  },
  // Candidates are only seen in its keys; the list knows where they are.
  election: async (locks, name) => {
    const pattern = name.replace(/[*?[\]\\]/g, "\\$&");
    const leader = await locks.election(name).leader();
    if (leader === null) return [];
    const found: Listed[] = [];
    for await (const one of locks.list({ match: pattern, kind: "election" })) found.push(one);
    return found;
  },
};

function shown(
  kind: Kind,
  name: string,
  holders: readonly ListedHolder[],
  waiters: readonly ListedWaiter[],
  more: { readonly kept?: boolean; readonly permits?: number | null },
): Listed[] {
  if (holders.length + waiters.length === 0) return [];
  const sorted = [...holders].sort((a, b) => (b.heldFor ?? 0) - (a.heldFor ?? 0));
  const [holder = null] = sorted;
  const { heldFor, remaining } = holder ?? { heldFor: null, remaining: null };
  return [
    {
      kind,
      name,
      holders: sorted,
      holder,
      heldFor,
      remaining,
      waiters,
      kept: more.kept === true,
      permits: more.permits ?? null,
    },
  ];
}

const holderOf = (
  owner: Owner,
  part: Pick<ListedHolder, "token" | "units" | "mode" | "remaining">,
  at: number | null,
) => {
  return { ...owner, ...part, heldFor: since(owner, at) };
};

const waiterOf = (
  owner: Owner,
  units: number,
  mode: ListedWaiter["mode"],
  at: number | null,
): ListedWaiter => {
  return { ...owner, units, mode, waitedFor: since(owner, at) };
};

const since = ({ since }: Owner, at: number | null): number | null =>
  since === null || at === null ? null : Math.max(0, Math.round(at - since));
