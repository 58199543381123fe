import { SHOWN_MAX } from "../defaults.ts";
import { type Owner, ownerOf } from "../owner.ts";
import type { Commands } from "../redis/commands.ts";
import { listLua as lua } from "../redis/lua.generated.ts";
import { fields, ttl } from "../redis/replies.ts";
import type { Seen } from "./look.ts";

interface Named {
  readonly kind: "lock" | "election";
  readonly name: string;
}

/**
 * What stands in locks and elections, in their order; null: in its keys is something else. One command shows many of them: one for each
 * costs this process twice as much, and Redis half as much again.
 */
export async function inspectAll(commands: Commands, named: readonly Named[]): Promise<(Seen | null)[]> {
  // In Cluster a command has the keys of one of them.
  if (commands.isCluster && named.length > 1)
    return (await Promise.all(named.map((one) => inspectAll(commands, [one])))).flat();
  const found: (Seen | null)[] = [];
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

function decode(reply: unknown): (Seen | null)[] {
  const [now, first, ...more] = fields(reply);
  // Without one of them it would be asked again for ever.
  return [first, ...more].map((look) => {
    const parts = fields(look);
    return parts.length === 0 ? null : seen(Number(now), parts);
  });
}

/** `now`: in µs, as tokens and tickets are. */
function seen(now: number, parts: readonly unknown[]): Seen {
  const [holder, token, remaining, told] = parts;
  const owner = holder === "" ? null : ownerOf(String(holder), Number(token), now);
  const queue: Owner[] = [];
  for (let i = 4; i < parts.length; i += 2) queue.push(ownerOf(String(parts[i]), Number(parts[i + 1]), now));
  const at = Math.floor(now / 1_000);
  return { at, owner, token: Number(token), remaining: owner && ttl(remaining), kept: told === 2, queue };
}
