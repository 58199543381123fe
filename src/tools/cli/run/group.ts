import { setTimeout as pause } from "node:timers/promises";
import { lineOf, processes, send } from "./processes.ts";

/** A command with all processes that it has started, as far as that can be determined. */
export interface Group {
  /**
   * Sends a signal to all of it. False: the system refuses that for a part that belongs to another
   * user by now.
   */
  signal(signal: NodeJS.Signals): boolean;
  /** How many of its processes run. */
  size(): number;
}

/** Between checks whether a group is gone, in ms. */
const LOOK_MIN = 5;
const LOOK_MAX = 200;

/**
 * Signals that a `holdfast` inside the command cannot forward to its own command, which has its own
 * session.
 */
const DEAF: ReadonlySet<NodeJS.Signals> = new Set(["SIGKILL", "SIGSTOP", "SIGCONT"]);

/** Its own group, whose number is the command's process id. */
export class OwnGroup implements Group {
  readonly #id: number;
  /** Further groups that were sent signals which nothing in them can forward. */
  #inner: readonly number[] = [];

  constructor(id: number) {
    this.#id = id;
  }

  signal(signal: NodeJS.Signals): boolean {
    // RACE: find them before the signal: once their parents are dead, nothing shows where they
    // belong.
    if (DEAF.has(signal)) this.#inner = this.#lookInside();
    const sent = [this.#id, ...this.#inner].map((group) => send(-group, signal));
    return !sent.includes("refused");
  }

  size(): number {
    this.#inner = this.#inner.filter(exists);
    // Usually it is gone, which is cheap to check.
    if (!exists(this.#id) && this.#inner.length === 0) return 0;
    try {
      return processes().filter(({ group }) => group === this.#id || this.#inner.includes(group)).length;
    } catch {
      return 1; // Some process is left, but how many is unknown.
    }
  }

  /** The groups of this program's descendants. */
  #lookInside(): number[] {
    const groups = new Set(this.#inner.filter(exists));
    try {
      const all = processes();
      const byPid = new Map(all.map((one) => [one.pid, one]));
      for (const one of all)
        for (const { pid } of lineOf(one, byPid)) if (pid === process.pid) groups.add(one.group);
      groups.delete(byPid.get(process.pid)?.group ?? 0);
      groups.delete(this.#id);
    } catch {
      // The command's own group remains, which needs no search.
    }
    return [...groups];
  }
}

/**
 * Resolves when none of its processes runs any more. `late`: called once when that takes longer
 * than a second.
 */
export async function gone(group: Group, late: (size: number) => void): Promise<void> {
  const since = performance.now();
  let isTold = false;
  for (let wait = LOOK_MIN; ; wait = Math.min(2 * wait, LOOK_MAX)) {
    const size = group.size();
    if (size === 0) return;
    if (!isTold && performance.now() - since > 1_000) {
      isTold = true;
      late(size);
    }
    await pause(wait);
  }
}

const exists = (group: number): boolean => send(-group, 0) !== "gone";
