import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Took } from "./client-process.ts";
import { byPerf, Callgrind, whyNoPerf } from "./counting.ts";

/** What the client needs for one acquisition and its release. */
export interface ClientWork {
  /** Of the first acquisitions of a new process, and of those of a warm one; in the meter's unit. */
  readonly cold: number;
  readonly warm: number;
  /** Bytes of heap that a warm one allocates. */
  readonly bytes: number;
}

/** Whose client it is. `library`: the file URL of another commit's Holdfast; null: the present one. */
export interface Subject {
  readonly contender: string;
  readonly library: string | null;
}

/**
 * How many callers take turns. How many acquisitions of a new process are measured, and how many
 * follow unmeasured.
 */
export interface ClientLoad {
  readonly callers: number;
  readonly cold: number;
  readonly between: number;
}

/**
 * Then so many are measured, so many times, and the least counts: V8 compiles a function anew long
 * after the first calls, when something happens for the first time, such as a timer between them.
 */
const WARM = 1_000;
const WINDOWS = 6;

/** What counts the work of clients on this machine. */
export interface ClientMeter {
  readonly about: string;
  readonly unit: "k" | "µs";
  readonly rounds: number;
  measure(url: string, subject: Subject, load: ClientLoad): Promise<ClientWork>;
}

/**
 * Whose bytes are counted, in each window: few enough for a young generation of so many MB, in which
 * nothing is collected meanwhile.
 */
const ALLOCATED = 1_000;
const ROOM = 128;
const ROOMY = ["--expose-gc", `--min-semi-space-size=${ROOM}`, `--max-semi-space-size=${ROOM}`];
/** The part of the acquisitions that may fail: their work is not what is measured. */
const FEW = 0.01;
const PROGRAM = fileURLToPath(new URL("./client-process.js", import.meta.url));

/** The best one: see launchMeter in meter.ts. */
export function clientMeter(): ClientMeter {
  const obstacle = whyNoPerf();
  const counted = "k = 1 000 user instructions of the process";
  if (obstacle === null)
    return {
      about: `${counted}, counted by perf`,
      unit: "k",
      rounds: 3,
      measure: (url, subject, load) =>
        measureClient(url, subject, load, [], (client, acquisitions) =>
          byPerf(client.pid, () => client.acquire(acquisitions)),
        ),
    };
  if (Callgrind.isHere())
    return {
      about: `${counted}, counted by valgrind: ${obstacle}`,
      unit: "k",
      rounds: 1,
      async measure(url, subject, load) {
        const callgrind = new Callgrind();
        try {
          return await measureClient(url, subject, load, callgrind.command, (client, acquisitions) =>
            callgrind.measure(client.pid, () => client.acquire(acquisitions)),
          );
        } finally {
          callgrind.remove();
        }
      },
    };
  return {
    about: `µs of user CPU time of the process, which other processes disturb: ${obstacle}, and there is no valgrind`,
    unit: "µs",
    rounds: 9,
    measure: (url, subject, load) =>
      measureClient(url, subject, load, [], async (client, acquisitions) => {
        const { user } = await client.acquire(acquisitions);
        return user;
      }),
  };
}

async function measureClient(
  url: string,
  subject: Subject,
  load: ClientLoad,
  before: readonly string[],
  measure: (client: Client, acquisitions: number) => Promise<number>,
): Promise<ClientWork> {
  // V8 compiles and collects in the same thread, so that it does the same work each time.
  const counted = await Client.start(url, subject, load, before, ["--single-threaded"]);
  const cold = (await measure(counted, load.cold)) / load.cold;
  await counted.acquire(load.between);
  let warm = Number.POSITIVE_INFINITY;
  for (let i = 0; i < WINDOWS; i++) warm = Math.min(warm, (await measure(counted, WARM)) / WARM);
  await counted.end();
  const roomy = await Client.start(url, subject, load, [], ROOMY);
  await roomy.acquire(load.cold + load.between);
  // Once. A collection that finds no lock in use makes V8 drop what it has compiled for locks, and
  // compile it anew: into the heap, whose growth is what is read here.
  roomy.collect();
  let bytes = Number.POSITIVE_INFINITY;
  for (let i = 0; i < WINDOWS; i++) bytes = Math.min(bytes, (await roomy.acquire(ALLOCATED)).bytes);
  await roomy.end();
  return { cold, warm, bytes: bytes / ALLOCATED };
}

/** A process that acquires as often as it is told. */
class Client {
  readonly pid: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid ?? 0;
  }

  /**
   * @param before what stands before the command, such as valgrind's
   * @param flags of node
   */
  static async start(
    url: string,
    { contender, library }: Subject,
    { callers }: ClientLoad,
    before: readonly string[],
    flags: readonly string[],
  ): Promise<Client> {
    const program = [
      process.execPath,
      ...flags,
      PROGRAM,
      url,
      contender,
      `${callers}`,
      ...(library === null ? [] : [library]),
    ];
    const [command = "", ...args] = [...before, ...program];
    const client = new Client(spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
    await client.#heard();
    return client;
  }

  async acquire(acquisitions: number): Promise<Took> {
    this.#child.send(acquisitions);
    const took = (await this.#heard()) as Took;
    if (took.lost > FEW * acquisitions) throw new Error(`${took.lost} of ${acquisitions} locks were lost`);
    return took;
  }

  collect(): void {
    this.#child.send("collect");
  }

  async end(): Promise<void> {
    this.#child.send(0);
    if (this.#child.exitCode === null) await once(this.#child, "exit");
  }

  async #heard(): Promise<unknown> {
    const over = new AbortController();
    const ended = once(this.#child, "exit", { signal: over.signal }).then(([code, signal]) => {
      throw new Error(`The client's process has ended with ${signal ?? `code ${code}`}`);
    });
    try {
      const [message] = (await Promise.race([
        once(this.#child, "message", { signal: over.signal }),
        ended,
      ])) as [unknown];
      return message;
    } finally {
      over.abort();
      ended.catch(() => {});
    }
  }
}
