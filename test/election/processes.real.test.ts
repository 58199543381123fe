// On a real Redis; in virtual time: test/world/directed/election.test.ts.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// Leaders whose process is killed, stopped, or resigns.

const own = new OwnServer();
const LEASE = 2_000;
/** The last 0.9 s of a lease are for the drift of clocks, and for the first look behind the end. */
const TAKEN_OVER = LEASE + 1_900;

/** Candidates in processes of their own, and what a client in this one sees of them. */
async function candidates(count: number) {
  const name = freshName("election");
  const list = freshName("list");
  const { locks } = await own.parties.join({ url: own.url });
  const actors = new Map<string, Actor>();
  const join = async (): Promise<void> => {
    const actor = await Actor.start({ url: own.url });
    actors.set(`${actor.pid}`, actor);
    await actor.call("runAsLeader", name, LEASE, list);
  };
  onTestFinished(async () => {
    for (const actor of actors.values()) await actor.end();
  });
  await Promise.all(Array.from({ length: count }, join));
  const seen = locks.election(name).observe();
  onTestFinished(() => void seen.return?.());
  /** Of a term behind this one. */
  const leader = async (token = 0): Promise<{ readonly token: number; readonly actor: Actor }> => {
    for (;;) {
      const { value, done } = await seen.next();
      if (done) throw new Error("the observation is over");
      const actor = value && value.token > token && actors.get(value.value);
      if (value && actor) return { token: value.token, actor };
    }
  };
  /** By what was written: is no token behind a greater one? */
  const expectOneAtATime = async (): Promise<void> => {
    const tokens = (await own.admin.lrange(list, 0, -1)).map(Number);
    expect(tokens).toEqual([...tokens].sort((one, other) => one - other));
    expect(new Set(tokens).size).toBeGreaterThan(1);
  };
  const writes = (token: number) =>
    until(async () => Number(await own.admin.lindex(list, -1)) === token, { what: "the leader to write" });
  return { actors, leader, join, writes, expectOneAtATime };
}

it("after SIGKILL the next candidate leads within the lease and 1.9 s, and two never lead at once", async ({
  annotate,
}) => {
  const { actors, leader, join, writes, expectOneAtATime } = await candidates(3);
  let { token, actor } = await leader();
  for (let i = 0; i < 2; i++) {
    await writes(token);
    const killed = performance.now();
    actor.kill();
    actors.delete(`${actor.pid}`);
    ({ token, actor } = await leader(token));
    const taken = performance.now() - killed;
    await annotate(`taken over behind ${Math.round(taken)} ms`);
    expect(taken).toBeLessThan(TAKEN_OVER);
    await join();
  }
  await writes(token);
  await expectOneAtATime();
});

it("a leader that resigns is followed at once, and a stopped process learns of its loss before it acts", async ({
  annotate,
}) => {
  const { leader, writes, expectOneAtATime } = await candidates(3);
  const first = await leader();
  await writes(first.token);
  const resigned = performance.now();
  await first.actor.call("resign");
  const second = await leader(first.token);
  const handedOn = performance.now() - resigned;
  await annotate(`handed on behind ${Math.round(handedOn)} ms`);
  expect(handedOn).toBeLessThan(LEASE);
  await writes(second.token);

  const stopped = second.actor.call("stopAsLeader");
  const third = await leader(second.token);
  await writes(third.token);
  await sleep(50);
  second.actor.kill("SIGCONT");
  expect(await stopped).toEqual({ held: false, lost: "expired", aborted: true });
  await expectOneAtATime();
});
