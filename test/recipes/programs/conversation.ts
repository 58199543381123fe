import { once } from "node:events";
import { createLockClient, isLockLost, StaleTokenError } from "holdfast";
import { fencedEval } from "holdfast/fencing";
import { connect, figure, ms, prove, sleep, startProcess, word } from "./support.ts";

interface Message {
  readonly by: "user" | "model";
  readonly text: string;
  /** Of an answer: how many messages the model had read. */
  readonly read?: number;
}

const [, , role, chat = "", text = ""] = process.argv;
const redis = connect();
const leaseTime = 2_000;
/** Words of an answer, one each 10 ms: 50 s of them, or 50 ms. */
const WORDS = role === "slow" ? 5_000 : 5;
/** When the model has begun its latest answer. */
let began = 0;

async function* model(transcript: readonly Message[], signal: AbortSignal): AsyncGenerator<string> {
  began = performance.now();
  process.send?.("writes");
  yield transcript.flatMap(({ by, text }) => (by === "user" ? [text] : [])).join("+");
  for (let i = 1; i < WORDS; i++) {
    await sleep(10, undefined, { signal });
    yield ` ${i}`;
  }
  if (role !== "sleeper") return;
  process.send?.("has all words");
  await once(process, "message"); // it is stopped here, for longer than its lease
}

const keyOf = (conversation: string): string => `transcript:${conversation}`;
const read = async (conversation: string): Promise<Message[]> =>
  (await redis.lrange(keyOf(conversation), 0, -1)).map((line) => JSON.parse(line) as Message);

// #region turn
const locks = createLockClient(redis, { leaseTime }); // 10_000: how long a crash blocks a conversation

/** Every message of a user calls this, in any process: one answer at a time is written. */
async function onMessage(conversation: string, text: string): Promise<void> {
  await redis.rpush(keyOf(conversation), JSON.stringify({ by: "user", text }));
  await locks.lock(`conversation:${conversation}`).withLock(async (lease) => {
    const transcript = await read(conversation);
    const known = transcript.findLast(({ by }) => by === "model")?.read ?? 0;
    if (!transcript.slice(known).some(({ by }) => by === "user")) return; // answered with another one
    // the lock is lost, or a newer message waits
    const stop = AbortSignal.any([lease.signal, lease.wanted]);
    let answer = "";
    try {
      for await (const word of model(transcript, stop)) answer += word;
    } catch (error) {
      if (lease.wanted.aborted && lease.held) return; // the newer message gets an answer to both
      throw error;
    }
    await append(conversation, { by: "model", text: answer, read: transcript.length }, lease.token);
  });
}

/** Redis refuses the answer of a process that was paused for longer than its lease. */
async function append(conversation: string, answer: Message, fence: number): Promise<void> {
  const script = `return redis.call("RPUSH", KEYS[1], ARGV[1])`;
  await fencedEval(redis, script, { keys: [keyOf(conversation)], args: [JSON.stringify(answer)], fence });
}
// #endregion

const answers = async (conversation: string): Promise<Message[]> =>
  (await read(conversation)).filter(({ by }) => by === "model");

if (role !== undefined) {
  const outcome = await onMessage(chat, text).then(
    () => "done",
    (error: Error) => `${isLockLost(error)} ${error.cause instanceof StaleTokenError}`,
  );
  process.send?.(outcome);
} else {
  const chats = ["interrupted", "busy", "crashed", "paused"].map((what) => `${process.pid}:${what}`);
  const [interrupted = "", busy = "", crashed = "", paused = ""] = chats;

  const first = startProcess(import.meta.url, "slow", interrupted, "one");
  prove((await word(first)) === "writes", "the first message is being answered");
  const came = performance.now();
  const given = word(first);
  await onMessage(interrupted, "two");
  figure("from a newer message to the beginning of its answer", ms(began - came));
  prove((await given) === "done", "the interrupted turn ends without an error");
  const [only, ...more] = await answers(interrupted);
  prove(only?.text === "one+two 1 2 3 4" && more.length === 0, "one answer to both messages");

  // From three processes, and several at a time from this one.
  const fleet = ["a", "b", "c"].map((text) => startProcess(import.meta.url, "fast", busy, text));
  await Promise.all(["d", "e", "f"].map((text) => onMessage(busy, text)));
  await Promise.all(fleet.map((child) => child.exitCode ?? once(child, "exit")));
  const last = (await answers(busy)).at(-1)?.text ?? "";
  prove(
    ["a", "b", "c", "d", "e", "f"].every((text) => last.includes(text)),
    "no message is left without an answer",
  );
  const counts = (await answers(busy)).map(({ read = 0 }) => read);
  prove(
    counts.every((count, i) => count > (counts[i - 1] ?? 0)),
    "each answer knows the ones before it",
  );

  const victim = startProcess(import.meta.url, "slow", crashed, "one");
  await word(victim);
  victim.kill("SIGKILL");
  const killed = performance.now();
  await onMessage(crashed, "two");
  figure(`from a crash to the next answer, with leaseTime ${leaseTime}`, ms(began - killed));
  prove((await answers(crashed)).length === 1, "the next message is answered with the one before it");

  const sleeper = startProcess(import.meta.url, "sleeper", paused, "one");
  await word(sleeper);
  prove((await word(sleeper)) === "has all words", "only the write is left");
  sleeper.kill("SIGSTOP");
  await onMessage(paused, "two");
  sleeper.send("go on");
  sleeper.kill("SIGCONT");
  prove((await word(sleeper)) === "true true", "the late answer is refused, and its caller learns why");
  prove((await answers(paused)).length === 1, "the transcript does not have it");

  await redis.del(chats.map(keyOf));
}
await locks.close();
await redis.quit();
process.disconnect?.();
