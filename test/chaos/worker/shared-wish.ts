import { PERMITS, SHARED } from "../arenas/arena.ts";
import type { Dice } from "../dice.ts";
import type { LockKind } from "../history/events.ts";
import type { Taste } from "./orders.ts";
import type { Wish } from "./wish.ts";

/** What is only told of wishes for what several share, or one of many does. Times are ms. */
export interface Particular {
  /** Permits of a semaphore. */
  readonly units?: number;
  /** The interval of a run. */
  readonly every?: number;
  readonly aligned?: boolean;
  readonly onCrash?: "again" | "keep";
  /** Of `remember`. */
  readonly keep?: number;
  readonly fingerprint?: string | undefined;
  /** The body of a run throws. */
  readonly throws?: boolean;
  /** Each caller of a read-write lock has a place of its own. */
  readonly fair?: boolean;
  /** A leader campaigns again when its term is lost. */
  readonly leads?: boolean;
  /** A writer goes on as a reader. */
  readonly downgrade?: boolean;
}

export type SharedName = (typeof SHARED)[number];

const EVERY = 400;

const KINDS: Readonly<Record<SharedName, readonly LockKind[]>> = {
  shared: ["readLock", "readLock", "readLock", "writeLock"],
  slots: ["permit"],
  throne: ["election"],
  tick: ["once"],
  slot: ["once"],
  memo: ["remember"],
  flight: ["remember"],
};

/** A wish of this taste, with what it has in common with any. */
export function sharedWish(dice: Dice, taste: Taste, usual: Wish): Wish {
  const wished = wishFor(dice, dice.pick<SharedName>(taste.names ?? SHARED), taste, usual);
  const particular = { ...wished.particular, ...taste.particular };
  if (!taste.isPatient) return { ...wished, particular };
  // So that for seconds nobody comes or goes, and what one script leaves undone no other one does.
  const options = { lease: 500, watchdog: true };
  const hold = dice.int(2_000, 3_000);
  return {
    ...wished,
    particular,
    method: wished.kind === "remember" ? "withLock" : "lock",
    options,
    abortAfter: null,
    hold,
    extend: null,
    listens: wished.kind === "election",
  };
}

function wishFor(dice: Dice, lock: SharedName, { kinds = KINDS[lock] }: Taste, usual: Wish): Wish {
  const kind = dice.pick(kinds);
  const { wait } = usual.options;
  const bare = wait === undefined ? {} : { wait };
  const plain = { ...usual, lock, also: [], kind, nested: false };
  switch (kind) {
    case "permit":
      return { ...plain, particular: { units: dice.pick([1, 1, 2, PERMITS]) } };
    case "election":
      return dice.chance(0.4)
        ? { ...plain, options: {}, extend: null, particular: { leads: true } }
        : { ...plain, options: bare };
    case "once": {
      const particular = {
        every: EVERY,
        aligned: lock === "slot",
        onCrash: dice.chance(0.8) ? ("again" as const) : ("keep" as const),
        throws: dice.chance(0.1),
      };
      const options = { lease: dice.int(300, 1_500) };
      return { ...plain, method: "withLock", options, extend: null, abortAfter: null, particular };
    }
    case "remember": {
      const lease = dice.int(300, 1_500);
      const particular = {
        // Most runs of the second one are for callers that wait.
        keep: lock === "memo" ? dice.pick([0, 200, 1_000, 4_000]) : dice.pick([0, 0, 0, 60]),
        fingerprint: dice.chance(0.2) ? dice.pick(["one", "other"]) : undefined,
        throws: dice.chance(0.15),
      };
      const options = { lease, ...(dice.chance(0.3) ? { wait: dice.pick([0, 500]) } : {}) };
      const hold = dice.chance(0.1) ? lease + dice.int(0, 1_000) : usual.hold;
      return { ...plain, method: "withLock", options, hold, extend: null, particular };
    }
    default: {
      const downgrade = kind === "writeLock" && dice.chance(0.4);
      const particular = { fair: dice.chance(0.2), downgrade };
      return { ...plain, nested: usual.nested, method: downgrade ? "lock" : usual.method, particular };
    }
  }
}
