import { election } from "./election.ts";
import type { Fleet } from "./fleet.ts";
import { once } from "./once.ts";

/** `seconds`: how long `once` runs; `kills`: how many leaders of `election` die. */
export const fleetsOf = ({ seconds, kills }: { seconds: number; kills: number }): readonly Fleet[] => [
  once(seconds),
  election(kills),
];
