// A bot answers one message of a conversation at a time, in any process. A newer message interrupts
// the answer that is being written, and gets one answer to both.
//
// Runs without Redis. In a service, createLockClient(redis) takes the place of createTestLocks().
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { LockClient } from "holdfast";
import { createTestLocks } from "holdfast/testing";

interface Message {
  readonly by: "user" | "bot";
  readonly text: string;
}

/** Stands for the database: a conversation's messages, and the largest token that has written. */
const transcript: Message[] = [];
let newest = 0;

/** UPDATE conversation SET … WHERE token <= $token: a late write of a former holder changes nothing. */
function append(text: string, token: number): void {
  if (token < newest) throw new Error("a newer turn has written");
  newest = token;
  transcript.push({ by: "bot", text });
}

/** Stands for the model: a word each 5 ms, until the signal aborts. */
async function* model(questions: readonly string[], signal: AbortSignal): AsyncGenerator<string> {
  yield `about ${questions.join(" and ")}:`;
  for (const word of ["a", "long", "answer", "of", "many", "words"]) {
    await setTimeout(5, undefined, { signal });
    yield ` ${word}`;
  }
}

/** What runs in each process, for every message. */
async function onMessage(locks: LockClient, conversation: string, text: string): Promise<string> {
  transcript.push({ by: "user", text });
  return locks.lock(`conversation:${conversation}`).withLock(async (lease) => {
    const open = transcript.slice(transcript.findLastIndex(({ by }) => by === "bot") + 1);
    if (open.length === 0) return "answered together with a newer message";
    // The lock is lost, or another caller waits for it: a newer message.
    const stop = AbortSignal.any([lease.signal, lease.wanted]);
    let answer = "";
    try {
      for await (const word of model(
        open.map(({ text }) => text),
        stop,
      ))
        answer += word;
    } catch (error) {
      if (lease.wanted.aborted && lease.held) return "interrupted";
      throw error;
    }
    append(answer, lease.token);
    return answer;
  });
}

// 10 s: how long the conversation waits when the process that answers crashes. The watchdog renews
// the lock, so an answer may take longer.
const locks = createTestLocks({ leaseTime: 10_000 });
const other = locks.test.another();

const first = onMessage(locks, "7", "Which train goes to Bern?");
await setTimeout(10);
const second = onMessage(other, "7", "At noon, please.");
console.log(`first message: ${await first}`);
console.log(`second message: ${await second}`);
assert.equal(await first, "interrupted");
assert.match(await second, /^about Which train .* and At noon, please\.: a long answer of many words$/);
assert.deepEqual(
  transcript.map(({ by }) => by),
  ["user", "user", "bot"],
);

// A client that would rather refuse: HTTP 409.
const busy = await locks.test.busy("conversation:8");
assert.equal(await other.lock("conversation:8").tryLock(), null);
console.log("a conversation that is being answered: 409");
await busy.undo();

await other.close();
await locks.close();
