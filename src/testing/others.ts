import { codes, listLua, redissonLua, spinLua } from "../redis/lua.generated.ts";
import type { Script } from "../redis/script.ts";
import { type Held, renewal, renewals } from "./held.ts";
import type { Kept, Memory, Run } from "./memory.ts";

const { OWNER, MINE, HELD, GONE, RELEASED, TAKEN } = codes;

/** The scripts of the locks that other libraries have: they keep no queue. */
export function others(memory: Memory): [Script, Run][] {
  const acquire: Run = ([lock = "", counter = ""], [hold, lease, , , fenced]) => {
    const held = memory.get<Held>(lock);
    const { now } = memory;
    if (held?.hold === hold && held) return [MINE, now, held.token, memory.raise(held, Number(lease))];
    // With the holder, where the messages of a lock are public.
    if (held) return [HELD, now, memory.left(held), -1, ...(fenced === undefined ? [] : [held.hold])];
    let token = 0;
    if (fenced === "fenced") {
      const last = memory.get<Kept & { last: number }>(counter);
      token = memory.keep(counter, Number.POSITIVE_INFINITY, { last: (last?.last ?? 0) + 1 }).last;
    }
    memory.keep(lock, Number(lease), { hold: String(hold), token, since: token, told: 0 });
    return [OWNER, now, token];
  };
  const release: Run = ([lock = ""], [hold, channel]) => {
    const held = memory.get<Held>(lock);
    if (held?.hold !== hold) return held ? TAKEN : GONE;
    memory.drop(lock);
    if (channel !== undefined) memory.publish(String(channel), "0");
    return RELEASED;
  };
  const inspect: Run = ([lock = ""]) => {
    const held = memory.get<Held>(lock);
    return held ? [held.hold, held.token, memory.left(held)] : ["", 0, 0];
  };
  const forceRelease: Run = ([lock = ""], [channel, token]) => {
    const held = memory.get<Held>(lock);
    if (token && Number(token) !== held?.token) return [0];
    return [
      held && release([lock], [held.hold, ...(channel === undefined ? [] : [channel])]) === RELEASED ? 1 : 0,
    ];
  };
  return [
    ...[spinLua, redissonLua].flatMap((one): [Script, Run][] => [
      [one.acquire, acquire],
      [one.release, release],
      [one.renew, renewals(memory)],
      [one.inspect, inspect],
      [one.forceRelease, forceRelease],
    ]),
    [redissonLua.forget, () => 0],
    [listLua.redisson, inspect],
    [
      redissonLua.recount,
      ([lock = ""], [hold]) => renewal(memory, memory.get<Held>(lock), [hold, 0])[0] ?? GONE,
    ],
  ];
}
