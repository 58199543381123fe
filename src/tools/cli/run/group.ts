import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

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

/** What runs on this machine. Null: it cannot be told. */
export function everything(): ReadonlySet<string> | null {
  try {
    return new Set(processes().map(keyOf));
  } catch {
    return null;
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

function send(pid: number, signal: NodeJS.Signals | 0): "sent" | "gone" | "refused" {
  try {
    process.kill(pid, signal);
    return "sent";
  } catch (error) {
    // EPERM: it is there, and belongs to another user by now.
    return (error as NodeJS.ErrnoException).code === "EPERM" ? "refused" : "gone";
  }
}

/** A process of this machine. */
interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** When it was started, in words of the system: numbers of processes are used again. */
  readonly start: string;
}

/**
 * All that run; not those that have ended and are only not collected yet, which in a container
 * nobody may ever do. May throw.
 */
export function processes(): Process[] {
  return process.platform === "linux" ? fromProc() : fromPs();
}

/** Tells a process from a later one with the same number. */
const keyOf = ({ pid, start }: Process): string => `${pid} ${start}`;

/** The process, its parent, and so on. */
function* lineOf(one: Process, byPid: ReadonlyMap<number, Process>): Generator<Process, void, undefined> {
  const seen = new Set<number>();
  for (let at: Process | undefined = one; at && !seen.has(at.pid); at = byPid.get(at.parent)) {
    yield at;
    seen.add(at.pid);
  }
}

/** Containers mostly have no ps. */
function fromProc(): Process[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      // Behind the program's name, which may have spaces and brackets in it.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const [state = "Z", parent, group] = fields;
      const start = fields[19] ?? "";
      return isOver(state)
        ? []
        : [{ pid: Number(name), parent: Number(parent), group: Number(group), start }];
    } catch (error) {
      // It has ended meanwhile, or is hidden from this user. Where files run out, all would seem to
      // have ended.
      if (/^(EMFILE|ENFILE|ENOMEM)$/.test((error as NodeJS.ErrnoException).code ?? "")) throw error;
      return [];
    }
  });
}

function fromPs(): Process[] {
  const ps = spawnSync("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="], { encoding: "utf8" });
  if (ps.error) throw ps.error;
  return ps.stdout.split("\n").flatMap((line) => {
    const [pid, parent, group, state = "Z", ...start] = line.trim().split(/\s+/);
    return isOver(state) || Number(pid) === ps.pid
      ? []
      : [{ pid: Number(pid), parent: Number(parent), group: Number(group), start: start.join(" ") }];
  });
}

const isOver = (state: string): boolean => /^[ZX]/.test(state);
