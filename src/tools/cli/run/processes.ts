import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** A process of this machine. */
export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** When it was started, in the system's format: process numbers are reused. */
  readonly start: string;
}

/** All that run; not zombies, which a container may never collect. May throw. */
export function processes(): Process[] {
  return process.platform === "linux" ? fromProc() : fromPs();
}

/** Distinguishes a process from a later one with the same number. */
export const keyOf = ({ pid, start }: Process): string => `${pid} ${start}`;

/** The process, its parent, and so on. */
export function* lineOf(
  one: Process,
  byPid: ReadonlyMap<number, Process>,
): Generator<Process, void, undefined> {
  const seen = new Set<number>();
  for (let at: Process | undefined = one; at && !seen.has(at.pid); at = byPid.get(at.parent)) {
    yield at;
    seen.add(at.pid);
  }
}

/** Containers usually have no ps. */
function fromProc(): Process[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      // After the program's name, which may contain spaces and brackets.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const [state = "Z", parent, group] = fields;
      const start = fields[19] ?? "";
      return isOver(state)
        ? []
        : [{ pid: Number(name), parent: Number(parent), group: Number(group), start }];
    } catch (error) {
      // It has ended meanwhile, or is hidden from this user. But if the process has run out of
      // files, all would seem to have ended.
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

/** All processes of this machine. Null: unknown. */
export function everything(): ReadonlySet<string> | null {
  try {
    return new Set(processes().map(keyOf));
  } catch {
    return null;
  }
}

/** Signals a process, or a group by its negative number. */
export function send(pid: number, signal: NodeJS.Signals | 0): "sent" | "gone" | "refused" {
  try {
    process.kill(pid, signal);
    return "sent";
  } catch (error) {
    // EPERM: it exists, and belongs to another user by now.
    return (error as NodeJS.ErrnoException).code === "EPERM" ? "refused" : "gone";
  }
}
