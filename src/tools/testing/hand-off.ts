import type { handoffLua as lua } from "../../redis/lua.generated.ts";
import {
  BLOCKED,
  GONE,
  HELD,
  type Held,
  idOf,
  type Memory,
  MINE,
  OWNER,
  RELEASED,
  RENEWED,
  type Reply,
  type Run,
  TAKEN,
  type Two,
} from "./memory.ts";

type Keys = readonly [lock: string, queue: string, clients: string, clock: string, ...before: string[]];
/** A hold, its token. */
type Ended = readonly [string, number];
/**
 * A hold, its lease, until when the command counts; passes, digit, its entry up to the hold; a lock
 * that must be held or the token of the holder to ask, a nonce.
 */
type Acquire = readonly [string, number, number, ...(string | number)[]];
type Recheck = readonly [string, number, number, string, number, number, number];
type Yield = readonly [...Ended, string, number, number, string, number];

/**
 * The scripts of locks that are handed on; elections use them too, because their leader holds one.
 */
export function handOff(db: Memory): Partial<Record<keyof typeof lua, Run>> & { readonly inspect: Run } {
  const heldAt = (lock: string): Held | undefined => db.get<Held>(lock);

  function own(lock: string, hold: string, ttl: number, passes: number, since?: number, told = 0): Reply {
    const token = db.token(passes);
    db.keep(lock, { hold, token, since: since ?? token, told }, ttl);
    return token;
  }

  /**
   * Grants the lock to the first waiter, and returns it; for the caller's own hold it only returns
   * it.
   */
  function grantNext(lock: string, queue: string, since?: number, me?: unknown): string | undefined {
    const [entry] = db.waiting(queue)[0] ?? [];
    if (entry === undefined) return undefined;
    db.take(queue, entry);
    const [, ttl, passes, ...words] = entry.split(" ");
    const hold = words.join(" ");
    if (hold !== me) {
      const token = own(lock, hold, Number(ttl), Number(passes), since);
      db.tell(hold, `grant ${token} ${db.now} ${ttl} ${db.waits(queue)} ${idOf(hold)} ${lock}`);
    }
    return hold;
  }

  function handOver(lock: string, queue: string, since?: number): void {
    db.drop(lock);
    grantNext(lock, queue, since);
  }

  const recall = ({ hold }: Held, lock: string, nonce: unknown): void =>
    db.tell(hold, `recall ${idOf(hold)} ${nonce || "-"} ${lock}`);

  const mine = (held: Held, lease: number, queue: string): Reply => {
    const left = db.raise(held, lease);
    return [MINE, db.now, held.token, left, db.waits(queue), held.told];
  };

  /**
   * What happened to a hold that no longer owns the lock: its own command ended it, or it was taken
   * away.
   */
  const ended = (held: Held | undefined, token: number): Reply =>
    held ? (held.since <= token && token < held.token ? RELEASED : TAKEN) : [GONE, db.lastToken];

  /** A free lock goes to the first waiter before the caller. */
  function acquire([lock, queue, , , before]: Keys, argv: Acquire, isAgain = false): Reply {
    const [hold, lease, , passes = 0, told = 0, place, after, nonce] = argv;
    const entry = place && place + hold;
    let held = heldAt(lock);
    if (held && held.hold === hold) return mine(held, lease, queue);
    if (before !== undefined && heldAt(before)?.hold !== after) {
      if (nonce && held?.told === 2) recall(held, lock, nonce);
      return [BLOCKED, db.now];
    }
    if (held && nonce && after && before === undefined && held.token !== Number(after))
      return [HELD, db.now, db.left(held), -1, 0];
    if (!held && (grantNext(lock, queue, undefined, hold) ?? hold) === hold) {
      const token = own(lock, hold, lease, Number(passes), undefined, Number(told));
      return [OWNER, db.now, token, db.waits(queue)];
    }
    held = heldAt(lock);
    const digit = held?.told ?? 0;
    const at = entry && (!nonce || digit === 2) ? db.enqueue(queue, entry) : -1;
    if (held && (nonce ? digit === 2 : (at === 0 || isAgain) && digit > 0)) recall(held, lock, nonce);
    return [HELD, db.now, db.left(held), at, digit];
  }

  /** It never queues. */
  const recheck = (keys: Keys, [hold, lease, passes, entry, , , told]: Recheck): Reply => {
    const [lock, queue] = keys;
    const isThere = heldAt(lock)?.hold === hold || db.placeOf(queue, entry) >= 0;
    const place = entry.slice(0, entry.length - hold.length);
    return isThere ? acquire(keys, [hold, lease, 0, passes, told, place], true) : [GONE, db.now];
  };

  const release = ([lock, queue]: Two, [hold, token]: Ended): Reply => {
    const held = heldAt(lock);
    if (held?.hold !== hold) return ended(held, token);
    handOver(lock, queue, held?.since);
    return RELEASED;
  };

  const inspect = ([lock, queue]: Two, [most, question]: readonly [number, ...string[]]): Reply => {
    const held = heldAt(lock);
    if (held?.told === 2 && question) recall(held, lock, question);
    const shown = held ? [held.hold, held.token, db.left(held), held.told] : ["", 0, 0, 0];
    const waiters = db.waiting(queue).slice(0, most);
    return [db.now, ...shown, ...waiters.flatMap(([entry, at]) => [entry.split(" ").slice(3).join(" "), at])];
  };

  const forceRelease = ([lock, queue]: Two, [label, token]: Two): Reply => {
    const held = heldAt(lock);
    if (!held || (token && Number(token) !== held.token)) return 0;
    handOver(lock, queue);
    db.tellRevoked(held.hold, lock, label);
    return 1;
  };

  return {
    acquire: (keys: Keys, argv: Acquire) => acquire(keys, argv),
    // After all others it has the channel for the check of rights.
    firstAcquire: (keys: Keys, argv: Acquire) => acquire(keys, argv.slice(0, -1) as unknown as Acquire),
    recheck,
    firstRecheck: recheck,
    release,
    inspect,
    forceRelease,

    yield([lock, queue]: Two, [old, token, hold, lease, passes, entry, told]: Yield) {
      const held = heldAt(lock);
      if (!held || held.hold !== old) return ended(held, token);
      db.enqueue(queue, entry);
      db.drop(lock);
      if (grantNext(lock, queue, held.since, hold) === hold) {
        const next = own(lock, hold, lease, passes, held.since, told);
        return [OWNER, db.now, next, db.waits(queue)];
      }
      return [HELD, db.now, db.left(heldAt(lock)), db.placeOf(queue, entry)];
    },

    leave([lock, queue]: Two, [hold, entry]: Two) {
      db.take(queue, entry);
      const held = heldAt(lock);
      if (!held || idOf(held.hold) !== hold) return GONE;
      handOver(lock, queue, held.since);
      return RELEASED;
    },

    renewStays([, ...keys], argv) {
      db.lastToken = Math.max(db.lastToken, db.now);
      const answers = keys.flatMap((lock, i): Reply[] => {
        if (i % 2 === 1) return [];
        const [hold, ttl, told] = argv.slice((3 * i) / 2);
        const held = heldAt(lock);
        if (!held || held.hold !== hold) return [held ? TAKEN : GONE, 0, 0, 0];
        if (told !== "-") held.told = Number(told);
        return [RENEWED, db.raise(held, Number(ttl)), db.waits(keys[i + 1] ?? ""), held.told];
      });
      return [db.now, ...answers];
    },

    releaseStays([, ...keys], argv) {
      const answers = argv.flatMap((hold, i): Reply[] => {
        if (i % 2 === 1) return [];
        const [lock = "", queue = ""] = keys.slice((3 * i) / 2);
        const answer = release([lock, queue], [`${hold}`, Number(argv[i + 1])]);
        return [typeof answer === "number" ? answer : GONE];
      });
      return [db.lastToken, ...answers];
    },
  };
}
