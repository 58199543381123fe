import type { onceLua } from "../../redis/lua.generated.ts";
import {
  GONE,
  HELD,
  type Kept,
  type Memory,
  MINE,
  type One,
  OWNER,
  RELEASED,
  type Run,
  TAKEN,
} from "./memory.ts";

/**
 * The turn of a function that runs once per interval. `hold`: the hold that runs it; "": it is
 * done.
 */
interface Turn extends Kept {
  readonly hold: string;
  readonly begin: number;
}

/** ms until the end of the turn that began at `begin`, at most a whole turn. */
function untilEnd(begin: number, now: number, every: number, isAligned: boolean): number {
  const passed = now - (isAligned ? begin - (begin % (every * 1_000)) : begin);
  return Math.min(Math.ceil(every - passed / 1_000), every);
}

/** The scripts of functions that run once per interval. */
export function once(db: Memory): Record<keyof typeof onceLua, Run> {
  return {
    begin(
      [key]: One,
      [hold, lease, every, slots, onCrash]: readonly [string, number, number, number, string],
    ) {
      const { now } = db;
      const isAligned = slots === 1;
      const turn = db.get<Turn>(key);
      if (turn && turn.hold === hold) return [MINE, now, turn.begin, db.raise(turn, lease)];
      if (turn && turn.hold !== "") return [HELD, now, db.left(turn)];
      if (turn && turn.begin > now) {
        // The clock was set back after this turn began.
        const next = isAligned ? untilEnd(now, now, every, true) : 0;
        const begin = now + next * 1_000;
        const left = Math.min(db.left(turn), next + every);
        if (db.left(turn) > left || turn.begin > begin) db.keep(key, { hold: "", begin }, left);
        return [GONE, now, left];
      }
      // Each caller has its own interval counted; the stored end is only raised.
      const left = turn ? untilEnd(turn.begin, now, every, isAligned) : 0;
      if (turn && left > 0) {
        db.raise(turn, left);
        return [GONE, now, left];
      }
      const rest = onCrash === "keep" ? untilEnd(now, now, every, isAligned) : 0;
      const ttl = Math.max(lease, rest);
      db.keep(key, { hold, begin: now }, ttl);
      return [OWNER, now, now, ttl];
    },
    end([key]: One, [hold, every, aligned, begin]: readonly [string, number, number, number]) {
      const turn = db.get<Turn>(key);
      if (!turn) return GONE;
      if (turn.hold !== hold) return turn.hold === "" && turn.begin === begin ? RELEASED : TAKEN;
      const left = untilEnd(turn.begin, db.now, every, aligned === 1);
      if (left > 0) db.keep(key, { hold: "", begin: turn.begin }, left);
      else db.drop(key);
      return RELEASED;
    },
    leave([key]: One, [hold]: One) {
      if (db.get<Turn>(key)?.hold !== hold) return GONE;
      db.drop(key);
      return RELEASED;
    },
    renew: db.renewals,
  };
}
