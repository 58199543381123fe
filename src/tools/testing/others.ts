import type { redissonLua } from "../../kinds/redisson-lua.generated.ts";
import {
  GONE,
  HELD,
  type Held,
  type Kept,
  type Memory,
  MINE,
  type One,
  OWNER,
  RELEASED,
  type Reply,
  type Run,
  TAKEN,
  type Two,
} from "./memory.ts";

type Acquire = readonly [string, number, number, string, ...string[]];

/** The scripts of other libraries' locks, which have no queue. */
export function others(db: Memory): Record<Exclude<keyof typeof redissonLua, "confirm">, Run> {
  const acquire = ([lock, counter]: Two, [hold, lease, , , fenced]: Acquire): Reply => {
    const held = db.get<Held>(lock);
    const { now } = db;
    if (held?.hold === hold && held) return [MINE, now, held.token, db.raise(held, lease)];
    // With the holder, if the lock's messages are public.
    if (held) return [HELD, now, db.left(held), -1, ...(fenced === undefined ? [] : [held.hold])];
    let token = 0;
    if (fenced === "fenced") {
      const last = db.get<Kept & { last: number }>(counter);
      token = db.keep(counter, { last: (last?.last ?? 0) + 1 }).last;
    }
    db.keep(lock, { hold, token, since: token, told: 0 }, lease);
    return [OWNER, now, token];
  };
  const release = ([lock]: One, [hold, channel]: readonly string[]): Reply => {
    const held = db.get<Held>(lock);
    if (held?.hold !== hold) return held ? TAKEN : GONE;
    db.drop(lock);
    if (channel !== undefined) db.publish(channel, "0");
    return RELEASED;
  };
  const inspect = ([lock]: One): Reply => {
    const held = db.get<Held>(lock);
    return held ? [held.hold, held.token, db.left(held)] : ["", 0, 0];
  };
  const forceRelease = ([lock]: One, [channel, token, holder]: readonly string[]): Reply => {
    const held = db.get<Held>(lock);
    if (!held || (token && Number(token) !== held.token) || (holder && holder !== held.hold)) return [0];
    release([lock], channel ? [held.hold, channel] : [held.hold]);
    return [1];
  };
  const recount = ([lock]: One, [hold]: One): Reply => db.renewal(db.get<Held>(lock), hold, 0)[0] ?? GONE;
  return { acquire, release, renew: db.renewals, inspect, forceRelease, recount, forget: () => 0 };
}
