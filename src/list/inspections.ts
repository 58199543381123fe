import type { Listed } from "../api/list.ts";
import type { Inspected } from "../api/lock.ts";
import type { HoldingParty, WaitingParty } from "../api/party.ts";
import { SHOWN_MAX } from "../defaults.ts";
import type { Commands } from "../redis/commands.ts";
import type { CountedInspection } from "../redis/counted-replies.ts";
import { Fields } from "../redis/fields.ts";
import { listLua as lua } from "../redis/lua.generated.ts";
import { readSeen } from "../redis/replies.ts";

interface Named {
  readonly kind: "lock" | "election";
  readonly name: string;
}

/**
 * What stands in locks and elections, in their order; null: in its keys is something else. One
 * command shows many of them: one for each costs this process twice as much, and Redis half as much
 * again.
 */
export async function inspectAll(commands: Commands, named: readonly Named[]): Promise<(Inspected | null)[]> {
  // In Cluster a command has the keys of one of them.
  if (commands.isCluster && named.length > 1)
    return (await Promise.all(named.map((one) => inspectAll(commands, [one])))).flat();
  const found: (Inspected | null)[] = [];
  while (found.length < named.length) {
    const keys = named.slice(found.length).flatMap(({ kind, name }) => {
      const { lock, queue } = kind === "lock" ? commands.keys.of(name) : commands.keys.ofElection(name);
      return [lock, queue];
    });
    // Those with long queues are divided among several commands, so that none takes long.
    found.push(...(await commands.run(lua.locks, keys, [SHOWN_MAX], decode)));
  }
  return found;
}

function decode(reply: unknown): (Inspected | null)[] {
  const from = new Fields(reply);
  const now = from.number();
  const found = from.each(() => {
    const look = from.list();
    return look.isOver ? null : readSeen(now, look);
  });
  // Without one of them it would be asked again for ever.
  if (found.length === 0) throw from.unexpected();
  return found;
}

/** What an inspection of a lock shows; null: nobody holds it, and nobody waits. */
export type Look = Omit<Listed, "kind" | "name">;

/** Of a lock that one has at a time. */
export const ofExclusive = ({ holder, waiters, kept }: Inspected): Look | null =>
  look(holder ? [holder] : [], waiters, kept, null);

/** Of a lock that several share. */
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
