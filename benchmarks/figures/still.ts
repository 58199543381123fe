import type { Stood } from "../workers/protocol.ts";
import type { StillFigures } from "./result.ts";

/** A third of the default lease, in ms. */
const PERIOD = 10_000;

export function stillFigures(stood: Stood): StillFigures {
  return {
    is: "still",
    callsPerPeriod: stood.commands === null ? null : (stood.commands * PERIOD) / stood.watched,
    clientShare: stood.cpu / 1_000 / stood.watched,
    redisShare: stood.redisCpu / 1_000 / stood.watched,
    bytesEach: stood.bytesEach,
    timers: stood.timers,
    lost: stood.lost,
    messages: stood.messages,
  };
}
