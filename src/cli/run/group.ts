import { setTimeout as pause } from "node:timers/promises";
import { type Process, processes } from "./processes.ts";

/** A command with everything that it has started, as far as that can be told. */
export interface Group {
  /** Sends a signal to all of it. */
  signal(signal: NodeJS.Signals): void;
  /** How many processes of it run. */
  size(): number;
}

/** Between looks whether a group is gone, in ms. */
const LOOK_MIN = 5;
const LOOK_MAX = 200;

/** A group of its own, whose number is the command's process id. */
export class OwnGroup implements Group {
  readonly #id: number;

  constructor(id: number) {
    this.#id = id;
  }

  signal(signal: NodeJS.Signals): void {
    send(-this.#id, signal);
  }

  size(): number {
    // Mostly it is gone, and that is cheap to find out.
    if (!send(-this.#id, 0)) return 0;
    return processes().filter(({ group }) => group === this.#id).length;
  }
}

/**
 * The group of a terminal: this program is in it too, and so are its neighbours in a pipe, and the shell's script around it. Of the
 * command are those that descend from this program, and those that have lost their parents: their ancestors have
 * neither this program nor its parent among them. Where that parent is process 1 orphans cannot be told from neighbours, and are
 * left alone.
 */
export class TerminalGroup implements Group {
  signal(signal: NodeJS.Signals): void {
    for (const { pid } of this.#members()) send(pid, signal);
  }

  size(): number {
    return this.#members().length;
  }

  #members(): Process[] {
    const all = processes();
    const parents = new Map(all.map(({ pid, parent }) => [pid, parent]));
    const group = all.find(({ pid }) => pid === process.pid)?.group;
    const isOurs = ({ pid }: Process): boolean => {
      const seen = new Set<number>();
      for (
        let at: number | undefined = pid;
        at !== undefined && at > 0 && !seen.has(at);
        at = parents.get(at)
      ) {
        if (at === process.pid) return true;
        if (at === process.ppid) return false;
        seen.add(at);
      }
      return true;
    };
    return all.filter((one) => one.group === group && one.pid !== process.pid && isOurs(one));
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

/** Is anything there? */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    // EPERM: it is there, and belongs to another user by now.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
