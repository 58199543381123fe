import { expect, it } from "vitest";
import { ServerState } from "../../src/tools/ui/server-state.ts";
import { pause } from "../../src/util/abort.ts";

/** A connection whose answers come when they are wanted. */
function asked() {
  const answers: ((answer: string | Error) => void)[] = [];
  const command = () =>
    new Promise<string>((resolve, reject) => {
      answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer)));
    });
  const state = new ServerState({ command } as never);
  const measure = async (ms: number, answer: string | Error = "") => {
    const measured = state.measure();
    await pause(ms, undefined);
    answers.shift()?.(answer);
    await measured;
  };
  return { answers, state, measure };
}

it("the time of an answer is the median of three: a busy page makes one slow", async () => {
  const { state, measure } = asked();
  expect(state.shown).toBeNull();
  await measure(0);
  await measure(200);
  expect(state.shown?.roundTrip).toBeLessThan(200);
  await measure(0);
  expect(state.shown?.roundTrip).toBeLessThan(200);
  await measure(200);
  expect(state.shown?.roundTrip).toBeGreaterThanOrEqual(199);
  await measure(0);
  await measure(0);
  expect(state.shown?.roundTrip).toBeLessThan(200);
  // A refusal is an answer too.
  await measure(200, new Error("NOPERM"));
  await measure(200, new Error("NOPERM"));
  expect(state.shown?.roundTrip).toBeGreaterThanOrEqual(199);
});

it("an answer that has not come takes as long as it is waited for, and is asked for once", async () => {
  const { answers, state } = asked();
  await state.measure();
  await pause(100, undefined);
  await state.measure();
  expect(answers).toHaveLength(1);
  expect(state.shown?.roundTrip).toBeGreaterThanOrEqual(990);
  answers.shift()?.("");
  await pause(0, undefined);
  for (let i = 0; i < 3; i++) {
    const measured = state.measure();
    expect(answers).toHaveLength(1);
    answers.shift()?.("");
    await measured;
  }
  expect(state.shown?.roundTrip).toBeLessThan(990);
});

it("memory is that of the last answer; one that is refused says nothing", async () => {
  const { answers, state, measure } = asked();
  await measure(0);
  const refresh = async (answer: string | Error) => {
    const refreshed = state.refresh();
    answers.shift()?.(answer);
    await refreshed;
  };
  await refresh("run_id:abc\r\nused_memory:1500000\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
  expect(state.shown).toMatchObject({ usedMemory: 1_500_000, maxMemory: null });
  await refresh("run_id:abc\r\nused_memory:1500000\r\nmaxmemory:3000000\r\nmaxmemory_policy:noeviction\r\n");
  expect(state.shown).toMatchObject({ usedMemory: 1_500_000, maxMemory: 3_000_000 });
  expect(state.memory).toBe(50);
  await refresh(new Error("NOPERM"));
  expect(state.shown).toMatchObject({ usedMemory: null, maxMemory: null });
});
