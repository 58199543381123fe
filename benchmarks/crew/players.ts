import { fileURLToPath } from "node:url";
import { contenders } from "../contenders/all.ts";
import type { Contender } from "../contenders/contender.ts";
import { idAt, OURS } from "../contenders/ids.ts";
import { javaPlayers } from "./java.ts";
import type { Player, WarmUp } from "./player.ts";

const WORKER = fileURLToPath(new URL("../workers/worker.js", import.meta.url));
/** V8 is done with compiling Holdfast after 3 000 to 4 000 acquisitions, and with COMPILE_EARLY after far fewer. */
const WARM_UP: WarmUp = { acquisitions: 2_000, ms: () => 20_000 };
/**
 * V8 compiles what has run often. A service has run for hours; here 32 processes run each for seconds, and would be
 * measured in the interpreter: a hand-off of Holdfast took 1 214 µs of CPU time there, of the floor's token 507 µs;
 * with an earlier compiler 735 and 301.
 */
const COMPILE_EARLY = "--interrupt-budget=10000";

/** Holdfast as another commit has it. */
export interface OtherCommit {
  readonly commit: string;
  /** The file URL of its compiled index.js. */
  readonly library: string;
}

/**
 * All that can play on this machine, by id.
 *
 * @param how.isCold processes that have just started, as V8 runs them by itself
 * @param how.profile where Node writes what its workers did with their time
 */
export function findPlayers(how: {
  readonly isCold: boolean;
  readonly profile: string | null;
  readonly other: OtherCommit | null;
}): ReadonlyMap<string, Player> {
  const { isCold, profile, other } = how;
  const watch = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  const early = isCold ? [] : [COMPILE_EARLY];
  const program = { command: process.execPath, args: ["--expose-gc", ...early, ...watch, WORKER] };
  const node = ([id, { title, waits, room = 1 }]: [string, Contender]): Player => {
    const shared = { warmUp: WARM_UP, program, isJava: false, countAtServer: null };
    return { id, title, waits, room, contender: id, library: null, ...shared };
  };
  const present = Object.entries(contenders).map(node);
  const others = other ? present.filter(({ id }) => OURS.includes(id)).map((one) => at(other, one)) : [];
  return new Map([...present, ...others, ...javaPlayers()].map((player) => [player.id, player]));
}

function at({ commit, library }: OtherCommit, player: Player): Player {
  return { ...player, id: idAt(player.id, commit), title: `${player.title} ${commit}`, library };
}
