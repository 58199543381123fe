import { fileURLToPath } from "node:url";
import { contenders } from "../contenders/all.ts";
import type { Contender } from "../contenders/contender.ts";
import { idAt, OURS } from "../contenders/ids.ts";
import { javaPlayers } from "./java.ts";
import type { Player, WarmUp } from "./player.ts";

const WORKER = fileURLToPath(new URL("../workers/worker.js", import.meta.url));
/**
 * V8 is done with compiling Holdfast after 3 000 to 4 000 acquisitions by itself, and after far
 * fewer when it compiles early.
 */
const WARM_UP: WarmUp = { acquisitions: 2_000, ms: () => 20_000 };
/** Holdfast as another commit has it. */
export interface OtherCommit {
  readonly commit: string;
  /** The file URL of its compiled index.js. */
  readonly library: string;
}

/**
 * All that can play on this machine, by id.
 *
 * @param how.profile where Node writes what its workers did with their time
 */
export function findPlayers(how: {
  readonly profile: string | null;
  readonly other: OtherCommit | null;
}): ReadonlyMap<string, Player> {
  const { profile, other } = how;
  const watch = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  const program = { command: process.execPath, args: ["--expose-gc", ...watch, WORKER] };
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
