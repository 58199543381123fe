import type { Group } from "./group.ts";
import { keyOf, lineOf, type Process, processes, send } from "./processes.ts";

/**
 * The group of a terminal: this program is in it too, and so are its neighbours in a pipe, and the
 * shell's script around it. Of the command are those that descend from this program, whatever their
 * group is, and those of the group that have lost their parents: no program of the group that is
 * around this one is among their ancestors. Where this program's parent is process 1 orphans cannot
 * be told from neighbours, and are left alone. What was there before the command is no part of it.
 */
export class TerminalGroup implements Group {
  readonly #child: number;
  readonly #before: ReadonlySet<string> | null;
  /** What was found once is of the command also when its parent is dead, where it has a group of its own. */
  readonly #found = new Set<string>();

  /** `before`: what `everything()` was before the command was started. */
  constructor(child: number, before: ReadonlySet<string> | null) {
    this.#child = child;
    this.#before = before;
  }

  signal(signal: NodeJS.Signals): boolean {
    return !this.#members().some((pid) => send(pid, signal) === "refused");
  }

  size(): number {
    return this.#members().filter((pid) => send(pid, 0) !== "gone").length;
  }

  #members(): number[] {
    try {
      const all = processes();
      const byPid = new Map(all.map((one) => [one.pid, one]));
      const self = byPid.get(process.pid);
      const around = new Set(self ? [...lineOf(self, byPid)].slice(1) : []);
      const isOurs = (one: Process): boolean => {
        for (const at of lineOf(one, byPid)) {
          if (at.pid === process.pid || this.#found.has(keyOf(at))) return true;
          if (around.has(at) && (at.pid === process.ppid || at.group === self?.group)) return false;
        }
        return this.#before !== null && one.group === self?.group;
      };
      const found = all.filter((one) => one !== self && !this.#before?.has(keyOf(one)) && isOurs(one));
      for (const one of found) this.#found.add(keyOf(one));
      return found.map(({ pid }) => pid);
    } catch {
      return [this.#child]; // Files have run out: the command itself can be told without them.
    }
  }
}
