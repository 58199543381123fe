import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

type News = { readonly begins: number } | { readonly ended: number; readonly troubles: readonly string[] };

const PROCESS = fileURLToPath(new URL("process.mjs", import.meta.url));

export interface Running {
  /** The module that gives the examples their connections. */
  readonly servers: string;
  readonly env: Readonly<Record<string, string>>;
  /** ms that a module may take. */
  readonly within: (module: string) => number;
}

/**
 * Runs modules one after the other in one process, and says of each what went wrong; [] of one that
 * is fine.
 */
export async function runAll(modules: readonly string[], running: Running): Promise<string[][]> {
  const found: string[][] = [];
  // A module that hangs takes its process with it; another process goes on after it.
  while (found.length < modules.length) found.push(...(await runSome(modules.slice(found.length), running)));
  return found;
}

/** What became of the first ones: of all, or of all up to one with which their process has ended. */
function runSome(modules: readonly string[], { servers, env, within }: Running): Promise<string[][]> {
  const child = fork(PROCESS, [servers, ...modules], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    execArgv: [],
  });
  const found: string[][] = [];
  let why = "";
  let printed = "";
  let timer: NodeJS.Timeout | undefined;
  child.stderr?.on("data", (piece: Buffer) => {
    printed += piece;
  });
  child.on("message", (news: News) => {
    clearTimeout(timer);
    if ("ended" in news) found.push([...news.troubles]);
    const current = modules[found.length];
    if (current === undefined) return void child.kill(); // all have ended, whatever they have left open
    timer = setTimeout(() => {
      why = `hangs: it did not end in ${within(current)} ms`;
      child.kill("SIGKILL");
    }, within(current));
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      if (found.length < modules.length)
        found.push([why || `its process ended (${code ?? signal}): ${printed}`]);
      resolve(found);
    });
  });
}
