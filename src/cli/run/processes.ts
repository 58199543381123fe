import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** A process of this machine. */
export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

/** All that run; not those that have ended and are only not collected yet, which in a container nobody may ever do. */
export function processes(): Process[] {
  return process.platform === "linux" ? fromProc() : fromPs();
}

/** Containers mostly have no ps. */
function fromProc(): Process[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      // Behind the program's name, which may have spaces and brackets in it.
      const [state = "Z", parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return isOver(state) ? [] : [{ pid: Number(name), parent: Number(parent), group: Number(group) }];
    } catch {
      return []; // It has ended meanwhile.
    }
  });
}

function fromPs(): Process[] {
  const ps = spawnSync("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat="], { encoding: "utf8" });
  return ps.stdout.split("\n").flatMap((line) => {
    const [pid, parent, group, state = "Z"] = line.trim().split(/\s+/);
    return isOver(state) || Number(pid) === ps.pid
      ? []
      : [{ pid: Number(pid), parent: Number(parent), group: Number(group) }];
  });
}

const isOver = (state: string): boolean => /^[ZX]/.test(state);
