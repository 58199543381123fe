import { type Profiler, Session } from "node:inspector/promises";
import { setFlagsFromString } from "node:v8";

/** The parts of one folder's sources that some work executes. */
export interface Passage {
  /** Paths below the folder. */
  readonly files: readonly string[];
  /** In order of files, and within each in source order. */
  readonly functions: readonly PassedFunction[];
  /** Calls of all these functions. */
  readonly calls: number;
}

interface PassedFunction {
  readonly file: string;
  /**
   * A method's name without its class; for a function without a name, the beginning of its text.
   */
  readonly name: string;
  /** How often it was called. */
  readonly calls: number;
}

/** Rounds until all one-time code has run. */
const WARM_UP = 300;
/**
 * Timers of the measured code may fire meanwhile, or have to be re-armed: the smallest of several
 * measurements is the work alone.
 */
const MEASUREMENTS = 20;
/** Made by V8 and by compilers: the initialisers of a class's fields, esbuild's helpers. */
const GENERATED = /^(<|__)/;
/** Characters of a function without a name. */
const EXCERPT = 50;

/**
 * Counts the functions and files below `folder` that some work executes when it is warm, by V8's
 * precise coverage.
 *
 * For a process that executes the sources file by file, unchanged or compiled by tsc or tsx, and
 * that does nothing else: from then on V8 optimises no code there. Vitest makes a function of each
 * export, and calls it at each use.
 *
 * @param folder the folder of the executed files: a file URL that ends with a slash
 */
export async function measurePassage(work: () => Promise<unknown>, folder: URL): Promise<Passage> {
  // V8 does not count the calls of optimised functions.
  setFlagsFromString("--no-opt");
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    // Detailed: otherwise V8 counts the continuation after each await as one more call.
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    for (let i = 0; i < WARM_UP; i++) await work();
    let least: { readonly called: readonly Called[]; readonly calls: number } | null = null;
    for (let i = 0; i < MEASUREMENTS; i++) {
      await work();
      await session.post("Profiler.takePreciseCoverage"); // sets all counts to zero
      await work();
      const { result } = await session.post("Profiler.takePreciseCoverage");
      const called = calledBelow(folder.href, result);
      const calls = called.reduce((sum, one) => sum + one.calls, 0);
      if (least === null || calls < least.calls) least = { called, calls };
    }
    const { called, calls } = least ?? { called: [], calls: 0 };
    return {
      files: [...new Set(called.map(({ file }) => file))],
      functions: await named(session, called),
      calls,
    };
  } finally {
    session.disconnect();
  }
}

interface Called extends PassedFunction {
  readonly scriptId: string;
  /** Its position in its script. */
  readonly start: number;
}

function calledBelow(folder: string, scripts: readonly Profiler.ScriptCoverage[]): Called[] {
  return scripts
    .filter(({ url }) => url.startsWith(folder))
    .sort((a, b) => (a.url < b.url ? -1 : 1))
    .flatMap(({ scriptId, url, functions }) =>
      functions
        .map(({ functionName: name, ranges: [{ count = 0, startOffset = 0 } = {}] }) => ({
          file: url.slice(folder.length),
          name,
          calls: count,
          scriptId,
          start: startOffset,
        }))
        .filter(({ name, calls }) => calls > 0 && !GENERATED.test(name))
        .sort((a, b) => a.start - b.start),
    );
}

/** Looks up the beginnings of functions without a name. */
async function named(session: Session, called: readonly Called[]): Promise<PassedFunction[]> {
  await session.post("Debugger.enable");
  return Promise.all(
    called.map(async ({ file, name, calls, scriptId, start }) => {
      if (name !== "") return { file, name, calls };
      const { scriptSource } = await session.post("Debugger.getScriptSource", { scriptId });
      return { file, name: scriptSource.slice(start, start + EXCERPT).replace(/\s+/g, " "), calls };
    }),
  );
}
