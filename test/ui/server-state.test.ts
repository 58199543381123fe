import { expect, it } from "vitest";
import { ServerState } from "../../src/tools/ui/server-state.ts";
import { pause } from "../../src/util/abort.ts";

const INFO = "run_id:abc\r\nused_memory:1500000\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n";

/** A connection whose answers come when they are wanted. */
function asked() {
  const answers: ((answer: string | Error) => void)[] = [];
  const command = () =>
    new Promise<string>((resolve, reject) => {
      answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer)));
    });
  return { answers, state: new ServerState({ command } as never) };
}

it("the time of an answer is that of the faster of two: a busy page makes one slow", async () => {
  const { answers, state } = asked();
  expect(state.shown).toBeNull();
  const ask = async (ms: number, answer: string | Error = INFO) => {
    const refreshed = state.refresh();
    await pause(ms, undefined);
    answers.shift()?.(answer);
    await refreshed;
  };
  await ask(200);
  expect(state.shown?.roundTrip).toBeGreaterThanOrEqual(200);
  await ask(0);
  expect(state.shown?.roundTrip).toBeLessThan(200);
  expect(state.shown).toMatchObject({ usedMemory: 1_500_000, maxMemory: null });
  await ask(200);
  expect(state.shown?.roundTrip).toBeLessThan(200);
  // A refusal is an answer too; it says nothing of the memory.
  await ask(200, new Error("NOPERM"));
  expect(state.shown?.roundTrip).toBeGreaterThanOrEqual(200);
  expect(state.shown).toMatchObject({ usedMemory: null, maxMemory: null });
});

it("an answer that has not come takes as long as it is waited for, and is asked for once", async () => {
  const { answers, state } = asked();
  await state.refresh();
  expect(state.shown?.roundTrip).toBeGreaterThanOrEqual(990);
  await pause(100, undefined);
  await state.refresh();
  expect(answers).toHaveLength(1);
  expect(state.shown?.roundTrip).toBeGreaterThanOrEqual(990);
  answers[0]?.(INFO);
  await pause(0, undefined);
  const refreshed = state.refresh();
  expect(answers).toHaveLength(2);
  answers[1]?.(INFO);
  await refreshed;
  expect(state.shown?.roundTrip).toBeLessThan(990);
});
