import type { LockOptions } from "../../../src/index.ts";
import { PLAIN_LOCKS } from "../arenas/arena.ts";
import type { Dice } from "../dice.ts";
import type { LockKind } from "../history/events.ts";
import type { Taste } from "./orders.ts";
import { type Particular, sharedWish } from "./shared-wish.ts";

/** One call, as the dice want it. Times are ms. */
export interface Wish {
  readonly lock: string;
  /** Locks that are taken together with it; most wishes have none. */
  readonly also: readonly string[];
  readonly kind: LockKind;
  readonly method: "lock" | "tryLock" | "withLock";
  /** `signal` is added by the caller. */
  readonly options: LockOptions;
  /** Abort its waiting after so long; null: never. */
  readonly abortAfter: number | null;
  readonly hold: number;
  /** Extend the lease on the way by so much; null: not. */
  readonly extend: number | null;
  /** Take the lock again inside `withLock`. */
  readonly nested: boolean;
  /** Listen to `lease.signal`, which is made on first use. */
  readonly listens: boolean;
  /** Of what several share, or one of many does. */
  readonly particular: Particular;
}

/** Whose wish it is. */
interface WishesFor {
  readonly dice: Dice;
  readonly names: readonly string[];
  /** Locks that are mostly one worker's, this worker's first. */
  readonly owns: readonly string[];
  readonly isQuorum: boolean;
  readonly taste: Taste;
}

/** A quorum has locks only. */
export function wish(desk: WishesFor): Wish {
  const { dice, isQuorum, taste } = desk;
  const usual = lockWish(desk);
  return !isQuorum && dice.chance(taste.shared) ? sharedWish(dice, taste, usual) : usual;
}

/**
 * The first lock is hot: everybody wants it, for no time at all, so that it is passed on and handed
 * over all the time. Others are mostly one worker's, which can keep them. A quorum has one kind of
 * lock.
 */
function lockWish({ dice, names: locks, owns, isQuorum }: WishesFor): Wish {
  const [hot = ""] = locks;
  const [own = ""] = owns;
  const plain = !isQuorum && dice.chance(0.15) ? dice.pick(Object.keys(PLAIN_LOCKS)) : null;
  // What nodes of a quorum may forget is chosen by the other locks.
  const ownOne = !isQuorum && dice.chance(0.3) ? (dice.chance(0.9) ? own : dice.pick(owns)) : null;
  const lock = plain ?? ownOne ?? (dice.chance(0.4) ? hot : dice.pick(locks));
  const isAlone = isQuorum || plain !== null || !dice.chance(0.08);
  const also = isAlone ? [] : dice.some(locks.filter((one) => one !== lock));
  const single = isQuorum
    ? "quorumLock"
    : (PLAIN_LOCKS[lock] ?? (dice.chance(ownOne ? 0.95 : 0.6) ? "lock" : "fairLock"));
  const method = dice.pick(["lock", "lock", "tryLock", "withLock", "withLock"] as const);
  return {
    lock,
    also,
    kind: also.length > 0 ? "multiLock" : single,
    method,
    options: options(dice, method),
    abortAfter: dice.chance(0.08) ? dice.int(0, 1_500) : null,
    hold: lock === hot ? dice.int(0, 2) : holdTime(dice),
    extend: dice.chance(0.15) ? dice.int(100, 2_500) : null,
    nested: dice.chance(0.1),
    listens: dice.chance(0.8),
    particular: {},
  };
}

function options(dice: Dice, method: Wish["method"]): LockOptions {
  const isPatient = method !== "tryLock" && dice.chance(0.6);
  const isHasty = method === "tryLock" && dice.chance(0.3);
  const wait = isPatient ? {} : { wait: isHasty ? 0 : dice.int(20, 3_000) };
  const lease = dice.chance(0.45) ? { lease: dice.int(200, 3_500) } : {};
  const watchdog = "lease" in lease && dice.chance(0.3) ? { watchdog: true } : {};
  const maxHold = dice.chance(0.03) ? { maxHold: dice.int(20, 1_000) } : {};
  return { ...wait, ...lease, ...watchdog, ...maxHold };
}

function holdTime(dice: Dice): number {
  const kind = dice.int(1, 100);
  if (kind <= 60) return dice.int(0, 2);
  if (kind <= 90) return dice.int(3, 30);
  if (kind <= 98) return dice.int(50, 400);
  return dice.int(400, 1_200);
}

/** How it was asked, for people. */
export function describeWish({ method, options, nested, particular }: Wish): string {
  const { wait: _, ...rest } = options;
  const told = Object.entries({ ...rest, ...particular }).map(([key, value]) => `${key} ${value}`);
  return [method, ...told, ...(nested && method === "withLock" ? ["nested"] : [])].join(", ");
}
