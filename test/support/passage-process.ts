/**
 * A program that measures which code of src a common call executes when it is warm, and prints it
 * as JSON, or as a list for people:
 *
 *     node --import tsx test/support/passage-process.ts free|contended [--list] [--library <file URL>]
 *
 * free: `locks.lock(name).tryLock(1_000)` and `unlock()`. contended: `locks.lock(name).lock()`,
 * which parks because another process holds the lock, is granted it by a message, and `unlock()`.
 * `--library` is another commit's compiled index.js. With the URL of a Redis instead of a call it
 * is that other process.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import type { createLockClient, Lease } from "../../src/index.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { measurePassage, type Passage } from "./coverage.ts";
import { until } from "./until.ts";

/** The calls that are measured. */
export type Call = "free" | "contended";

/**
 * The commands for the other process: take the lock of this name; report when a process waits for
 * it; unlock it.
 */
type Word = { readonly take: string } | "waiter?" | "unlock";

const PRESENT = new URL(
  import.meta.url.endsWith(".ts") ? "../../src/index.ts" : "../../src/index.js",
  import.meta.url,
).href;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { list: { type: "boolean", default: false }, library: { type: "string", default: PRESENT } },
});
const library: { createLockClient: typeof createLockClient } = await import(values.library);
const [call = ""] = positionals;
if (call === "free" || call === "contended") {
  const passage = await measure(call);
  process.stdout.write(values.list ? asList(passage) : JSON.stringify(passage));
} else beTheOther(call);

/**
 * On a private server: after tests that set the clock of tokens ahead, a call executes more code.
 */
async function measure(call: Call): Promise<Passage> {
  const server = await launchServer();
  try {
    const redis = new Redis(server.url);
    const locks = library.createLockClient(redis);
    const name = `passage:${randomUUID()}`;
    const free = async (): Promise<void> => {
      const lease = await locks.lock(name).tryLock(1_000);
      if (!lease) throw new Error("The lock is not free");
      await lease.unlock();
    };
    const other = call === "free" ? null : await startOther(server.url);
    let rounds = 0;
    let byMessage = 0;
    const contended = async (): Promise<void> => {
      await other?.ask({ take: name });
      const lock = locks.lock(name).lock();
      await other?.ask("waiter?");
      // Answers come in the order of commands: by now the client has read that it is queued.
      await redis.ping();
      const sent = redis.stream.bytesWritten;
      other?.tell("unlock");
      const lease = await lock;
      rounds++;
      if (redis.stream.bytesWritten === sent) byMessage++;
      await lease.unlock();
    };
    try {
      const passage = await measurePassage(call === "free" ? free : contended, new URL(".", values.library));
      // On a machine that is suspended for a second, the client may ask Redis before it reads a
      // message.
      if (byMessage < rounds / 2) throw new Error(`${byMessage} of ${rounds} grants came by message`);
      return passage;
    } finally {
      other?.end();
      await locks.close();
      redis.disconnect();
    }
  } finally {
    await server.stop();
  }
}

/** Another process with its own client. */
async function startOther(url: string) {
  const child = fork(fileURLToPath(import.meta.url), [url, "--library", values.library]);
  child.once("exit", (code) => {
    if (code !== 0) throw new Error("The other process has failed");
  });
  await once(child, "message");
  return {
    tell: (word: Word) => child.send(word),
    async ask(word: Word) {
      child.send(word);
      await once(child, "message");
    },
    end: () => child.disconnect(),
  };
}

function beTheOther(url: string): void {
  const redis = new Redis(url);
  const locks = library.createLockClient(redis);
  let lease: Lease | null = null;
  const say = (): void => void process.send?.("done");
  const obey = async (word: Word): Promise<void> => {
    if (word === "unlock") {
      await lease?.unlock();
      return;
    }
    if (word === "waiter?") await until(async () => (await waiters()) === 1);
    else lease = await locks.lock(word.take).lock();
    say();
  };
  const waiters = async () => (lease === null ? 0 : (await locks.lock(lease.name).inspect()).waiters?.length);
  process.on("message", (word: Word) => void obey(word));
  process.once("disconnect", () => process.exit());
  say();
}

function asList({ files, functions, calls }: Passage): string {
  const byFile = files.map((file) => {
    const own = functions.filter((one) => one.file === file);
    return `\n${file}\n${own.map((one) => `${`${one.calls}`.padStart(4)}  ${one.name}\n`).join("")}`;
  });
  return `${files.length} files, ${functions.length} functions, ${calls} calls\n${byFile.join("")}`;
}
