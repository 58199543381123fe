import type { Listed } from "../api/list.ts";
import type { Inspected } from "../api/lock.ts";
import type { HoldingParty, WaitingParty } from "../api/party.ts";
import { SHOWN_MAX } from "../defaults.ts";
import type { Commands } from "../redis/commands.ts";
import type { CountedInspection } from "../redis/counted-replies.ts";
import { unexpected } from "../redis/fields.ts";
import { listLua as lua } from "../redis/lua.generated.ts";
import { queueInspectionOf } from "../redis/replies.ts";

interface Named {
  readonly kind: "lock" | "election" | "remember";
  readonly name: string;
}

const KEYS = { lock: "of", election: "ofElection", remember: "ofRemembered" } as const;

/**
 * The contents of locks, elections and runs, in order; null: the keys hold something else. One command
 * reads many of them: one command each costs this process twice as much, and Redis half as much
 * again.
 */
export async function inspectAll(commands: Commands, named: readonly Named[]): Promise<(Inspected | null)[]> {
  // In Cluster a command can have the keys of only one of them.
  if (commands.isCluster && named.length > 1)
    return (await Promise.all(named.map((one) => inspectAll(commands, [one])))).flat();
  const found: (Inspected | null)[] = [];
  while (found.length < named.length) {
    const keys = named.slice(found.length).flatMap(({ kind, name }) => {
      const { lock, queue } = commands.keys[KEYS[kind]](name);
      return [lock, queue];
    });
    // The script splits those with long queues over several commands, so that none takes long.
    const { at, all } = await commands.run(lua.locks, keys, { most: SHOWN_MAX });
    // Without any, this would be asked forever.
    if (all.length === 0) throw unexpected(all);
    for (const { seen } of all) {
      if (seen.hold === undefined) found.push(null);
      // The last of its fields is there only if all of them are.
      else if (seen.told === undefined) throw unexpected(all);
      else found.push(queueInspectionOf(at, seen as Required<typeof seen>));
    }
  }
  return found;
}

/** What an inspection of a lock shows; null: it is neither held nor waited for. */
export type Look = Omit<Listed, "kind" | "name">;

/** For a lock with one holder at a time. */
export const ofExclusive = ({ holder, waiters, kept }: Inspected): Look | null =>
  look(holder ? [holder] : [], waiters, kept, null);

/** For a lock that several hold. */
export function ofCounted(
  { holders, waiters, permits }: CountedInspection,
  kind: "readWrite" | "semaphore",
): Look | null {
  const parties = holders.map(({ party }) => party);
  parties.sort((one, other) => (one.since ?? 0) - (other.since ?? 0));
  const kept = holders.length > 0 && holders.every((holder) => holder.kept);
  return look(parties, waiters, kept, kind === "semaphore" ? permits : null);
}

function look(
  holders: readonly HoldingParty[],
  waiters: readonly WaitingParty[] | null,
  kept: boolean,
  permits: number | null,
): Look | null {
  const [holder = null] = holders;
  if (!holder && !waiters?.length) return null;
  const { heldFor, remaining } = holder ?? { heldFor: null, remaining: null };
  return { holders, holder, heldFor, remaining, waiters, kept, permits };
}
