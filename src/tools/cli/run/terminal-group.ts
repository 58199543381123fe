import type { Group } from "./group.ts";
import { keyOf, lineOf, type Process, processes, send } from "./processes.ts";

/**
 * The foreground group of a terminal: it also contains this program, its neighbours in a pipe, and
 * the shell script around it. Part of the command are: descendants of this program, in any group;
 * and members of the group that have lost their parents, if no program of the surrounding group is
 * among their ancestors. If this program's parent is process 1, orphans look like neighbours, and
 * are left alone. Processes that are older than the command are no part of it.
 */
export class TerminalGroup implements Group {
  readonly #child: number;
  readonly #before: ReadonlySet<string> | null;
  /**
   * A process found once stays part of the command after its parent is dead, if it has its own
   * group.
   */
  readonly #found = new Set<string>();

  /** `before`: the result of `everything()` before the command was started. */
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
      return [this.#child]; // Files have run out: the command itself is known without them.
    }
  }
}
