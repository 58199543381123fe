import { setTimeout as pause } from "node:timers/promises";
import { lineOf, processes, send } from "./processes.ts";

/** A command with everything that it has started, as far as that can be told. */
export interface Group {
  /**
   * Sends a signal to all of it. False: the system refuses that for some of it, which belong to
   * another user by now.
   */
  signal(signal: NodeJS.Signals): boolean;
  /** How many processes of it run. */
  size(): number;
}

/** Between looks whether a group is gone, in ms. */
const LOOK_MIN = 5;
const LOOK_MAX = 200;

/**
 * What a `holdfast` inside of the command cannot hand on to its own command, which has a session of
 * its own.
 */
const DEAF: ReadonlySet<NodeJS.Signals> = new Set(["SIGKILL", "SIGSTOP", "SIGCONT"]);

/** A group of its own, whose number is the command's process id. */
export class OwnGroup implements Group {
  readonly #id: number;
  /** Further groups that have been sent what nothing in them can hand on. */
  #inner: readonly number[] = [];

  constructor(id: number) {
    this.#id = id;
  }

  signal(signal: NodeJS.Signals): boolean {
    // RACE: they are looked for before the signal, because nothing tells whose they are once their
    // parents are dead.
    if (DEAF.has(signal)) this.#inner = this.#lookInside();
    const sent = [this.#id, ...this.#inner].map((group) => send(-group, signal));
    return !sent.includes("refused");
  }

  size(): number {
    this.#inner = this.#inner.filter(exists);
    // Mostly it is gone, and that is cheap to find out.
    if (!exists(this.#id) && this.#inner.length === 0) return 0;
    try {
      return processes().filter(({ group }) => group === this.#id || this.#inner.includes(group)).length;
    } catch {
      return 1; // There is something, however much.
    }
  }

  /** Groups of what descends from this program. */
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
      // The command's own group is left, which needs no looking.
    }
    return [...groups];
  }
}

/** Resolves when nothing of it runs any more. `late`: called once when that takes longer than a second. */
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
