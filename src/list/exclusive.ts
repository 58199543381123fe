import { SHOWN_MAX } from "../defaults.ts";
import type { Commands } from "../redis/commands.ts";
import { Fields } from "../redis/fields.ts";
import { listLua as lua } from "../redis/lua.generated.ts";
import { type Inspected, readSeen } from "../redis/replies.ts";

interface Named {
  readonly kind: "lock" | "election";
  readonly name: string;
}

/**
 * What stands in locks and elections, in their order; null: in its keys is something else. One command shows many of them: one for each
 * costs this process twice as much, and Redis half as much again.
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
