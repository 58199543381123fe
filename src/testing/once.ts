import { codes, onceLua } from "../redis/lua.generated.ts";
import type { Script } from "../redis/script.ts";
import { renewals } from "./held.ts";
import type { Kept, Memory, Run } from "./memory.ts";

const { OWNER, MINE, HELD, GONE, RELEASED, TAKEN } = codes;

/** The turn of what runs once per interval. It runs for a hold, or is done: "". */
interface Turn extends Kept {
  readonly hold: string;
  readonly begin: number;
}

/** ms until the end of the turn that began then, and never longer than a turn. */
function untilEnd(begin: number, now: number, every: number, isAligned: boolean): number {
  const passed = now - (isAligned ? begin - (begin % (every * 1_000)) : begin);
  return Math.min(Math.ceil(every - passed / 1_000), every);
}

/** The scripts of what runs once per interval. */
export function once(memory: Memory): [Script, Run][] {
  return [
    [
      onceLua.begin,
      ([key = ""], [hold, lease, every, aligned, onCrash]) => {
        const { now } = memory;
        const turn = memory.get<Turn>(key);
        if (turn && turn.hold === hold) return [MINE, now, turn.begin, memory.raise(turn, Number(lease))];
        if (turn) return [turn.hold === "" ? GONE : HELD, now, memory.left(turn)];
        const rest = onCrash === "keep" ? untilEnd(now, now, Number(every), aligned === 1) : 0;
        const ttl = Math.max(Number(lease), rest);
        memory.keep(key, ttl, { hold: String(hold), begin: now });
        return [OWNER, now, now, ttl];
      },
    ],
    [
      onceLua.end,
      ([key = ""], [hold, every, aligned, begin]) => {
        const turn = memory.get<Turn>(key);
        if (!turn) return GONE;
        if (turn.hold !== hold) return turn.hold === "" && turn.begin === Number(begin) ? RELEASED : TAKEN;
        const left = untilEnd(turn.begin, memory.now, Number(every), aligned === 1);
        if (left > 0) memory.keep(key, left, { hold: "", begin: turn.begin });
        else memory.drop(key);
        return RELEASED;
      },
    ],
    [
      onceLua.leave,
      ([key = ""], [hold]) => {
        if (memory.get<Turn>(key)?.hold !== hold) return GONE;
        memory.drop(key);
        return RELEASED;
      },
    ],
    [onceLua.renew, renewals(memory)],
  ];
}
