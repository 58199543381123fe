import { type Profiler, Session } from "node:inspector/promises";

/** What some work passes of the sources in one folder. */
export interface Passage {
  /** Paths below the folder. */
  readonly files: readonly string[];
  /** Calls of functions and getters; a function that is called twice counts twice. */
  readonly entries: number;
  /** How often each function was entered, by "file function". */
  readonly functions: Readonly<Record<string, number>>;
}

/** Until everything that happens once has happened. */
const WARM_UP = 100;
/** Timers of the measured code may fire meanwhile, or have to be armed again: the smallest of some measurements is the work alone. */
const MEASUREMENTS = 60;
/** Made by V8 and by compilers: the initializers of a class's fields, esbuild's helpers. */
const GENERATED = /^(<|__)/;

/**
 * Counts the functions and files below `folder` that some work passes when it is warm, by V8's precise coverage.
 *
 * For a process that executes the sources file by file as they are, or compiled by tsc or tsx. Vitest makes a function of
 * each export, and calls it at each use.
 *
 * @param folder where the executed files lie: a file URL that ends with a slash
 */
export async function measurePassage(work: () => Promise<unknown>, folder: URL): Promise<Passage> {
  for (let i = 0; i < WARM_UP; i++) await work();
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    // Detailed: else V8 counts the continuation behind each await as one more entry.
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    const passages: Passage[] = [];
    for (let i = 0; i < MEASUREMENTS; i++) {
      await work();
      await session.post("Profiler.takePreciseCoverage"); // sets all counts to zero
      await work();
      const { result } = await session.post("Profiler.takePreciseCoverage");
      passages.push(summarize(result, folder.href));
    }
    return passages.reduce((least, other) => (other.entries < least.entries ? other : least));
  } finally {
    session.disconnect();
  }
}

function summarize(scripts: readonly Profiler.ScriptCoverage[], folder: string): Passage {
  const functions: Record<string, number> = {};
  const files = new Set<string>();
  let entries = 0;
  for (const { url, functions: inFile } of scripts) {
    if (!url.startsWith(folder)) continue;
    const file = url.slice(folder.length);
    for (const { functionName, ranges } of inFile) {
      const count = ranges[0]?.count ?? 0;
      if (count === 0 || GENERATED.test(functionName)) continue;
      const name = `${file} ${functionName || "(anonymous)"}`;
      functions[name] = (functions[name] ?? 0) + count;
      files.add(file);
      entries += count;
    }
  }
  return { files: [...files].sort(), entries, functions };
}
