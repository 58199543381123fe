import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { LockError, type Term } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { pauses } from "../../src/util/abort.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

const own = new OwnServer();
const join = (client = {}) => own.parties.join({ url: own.url, client });
const keysOf = (name: string) => new Keys("", false).ofElection(name);
const isFree = async (name: string): Promise<boolean> => (await own.admin.exists(keysOf(name).lock)) === 0;
/** The term is over, as by a server that has lost it. */
const depose = (name: string) => own.admin.del(keysOf(name).lock);
const aborted = async ({ signal }: Term): Promise<void> => {
  if (!signal.aborted) await once(signal, "abort");
};

it("runAsLeader resolves with what the body returns while it leads, rejects with what it throws, and the term is over before", async () => {
  const { locks } = await join();
  const name = freshName("election");
  const election = locks.election(name);
  const body = async ({ token, value }: Term) => ({ token, value, seen: await election.leader() });
  const result = await election.runAsLeader({ value: "me" }, body);
  expect(result.terms).toBe(1);
  const { token, value, seen } = result.value ?? {};
  expect(value).toBe("me");
  expect(seen).toMatchObject({ id: locks.id, label: null, pid: process.pid, value: "me", token });
  expect(await isFree(name)).toBe(true);
  const error = new Error("no");
  expect(await failure(election.runAsLeader(() => Promise.reject(error)))).toBe(error);
  expect(await isFree(name)).toBe(true);
  expect(await election.runAsLeader(() => 7)).toEqual({ terms: 1, value: 7 });
});

it("a lost term ends its body before the next one begins, and a value returned after the loss is no result", async () => {
  const { locks } = await join();
  const name = freshName("election");
  const tokens: number[] = [];
  let inside = 0;
  const result = locks.election(name, { lease: 400 }).runAsLeader(async (term) => {
    expect(++inside).toBe(1);
    tokens.push(term.token);
    if (tokens.length < 3) {
      await depose(name);
      await aborted(term);
      // The body takes its time, and the lock is free.
      await until(() => isFree(name));
    }
    inside--;
    return tokens.length;
  });
  expect(await result).toEqual({ terms: 3, value: 3 });
  expect(tokens).toEqual([...new Set(tokens)].sort());
});

it("an error after a loss is the cause of an event, the loss itself is not, and each makes the next pause longer", async () => {
  const { locks } = await join();
  const name = freshName("election");
  const errors: LockError[] = [];
  locks.on("error", (error) => errors.push(error));
  const thrown = [new Error("first"), new Error("second")];
  const begins: number[] = [];
  const ends: number[] = [];
  await locks.election(name, { lease: 400 }).runAsLeader(async (term) => {
    begins.push(performance.now());
    if (begins.length === 4) return;
    await depose(name);
    await aborted(term);
    ends.push(performance.now());
    throw thrown[begins.length - 1] ?? term.lost;
  });
  expect(errors.every((error) => error instanceof LockError)).toBe(true);
  expect(errors.map(({ cause }) => cause)).toEqual(thrown);
  expect(errors[0]).toMatchObject({
    code: "BODY_FAILED",
    lockName: name,
    message: `The body of runAsLeader for election '${name}' failed after its term was lost: first.`,
  });
  const pauses = ends.map((end, i) => (begins[i + 1] ?? 0) - end);
  // 300, 600, and 150 behind a loss alone, by a quarter less at the least.
  expect(pauses[0]).toBeGreaterThan(220);
  expect(pauses[1]).toBeGreaterThan(440);
  expect(pauses[2]).toBeGreaterThan(110);
});

it("the signal of a call ends a candidate at once, a leader through its body, and a pause", async () => {
  const [a, b] = [await join(), await join()];
  const name = freshName("election");
  const stop = new AbortController();
  const leading = a.locks.election(name).runAsLeader({ signal: stop.signal }, async (term) => {
    await aborted(term);
    expect([term.held, term.lost, term.signal.reason]).toEqual([true, null, stop.signal.reason]);
    return "done";
  });
  await until(async () => (await b.locks.election(name).leader()) !== null);
  const waiting = b.locks.election(name).runAsLeader({ signal: stop.signal }, () => expect.unreachable());
  await until(() => own.admin.zcard(keysOf(name).queue));
  const reason = new Error("the process stops");
  stop.abort(reason);
  expect(await waiting).toEqual({ terms: 0, value: undefined });
  expect(await leading).toEqual({ terms: 1, value: "done" });
  expect(await isFree(name)).toBe(true);

  const later = new AbortController();
  const paused = a.locks
    .election(name, { lease: 400 })
    .runAsLeader({ signal: later.signal }, async (term) => {
      await depose(name);
      await aborted(term);
      setImmediate(() => later.abort(reason));
    });
  expect(await paused).toEqual({ terms: 1, value: undefined });
});

it.each([
  ["in its pause", 1],
  ["while its body ends", 0],
])("a client closed %s leaves no pause timer that would keep the process alive", async (when, often) => {
  const { locks } = await join();
  const begun = vi.spyOn(pauses, "set");
  const name = freshName("election");
  locks.on("error", () => {});
  const running = locks.election(name, { lease: 400 }).runAsLeader(async (term) => {
    await depose(name);
    await aborted(term);
    if (when !== "in its pause") await locks.close();
    throw new Error("behind the loss");
  });
  const ended = failure(running);
  await until(() => begun.mock.calls.length === often);
  if (when === "in its pause") {
    void locks.close();
    await nextTurn();
    expect(pauses.size).toBe(0);
  }
  expect(await ended).toMatchObject({ code: "CLIENT_CLOSED" });
  expect(begun).toHaveBeenCalledTimes(often);
  begun.mockRestore();
});

it("a leader leads again after an outage that is longer than its lease", async () => {
  const { locks, redis } = await join({ replyTimeout: 200 });
  const name = freshName("election");
  const errors: string[] = [];
  locks.on("error", (error) => errors.push(String(error)));
  const tokens: number[] = [];
  const result = locks.election(name, { lease: 300 }).runAsLeader(async (term) => {
    tokens.push(term.token);
    if (tokens.length > 1) return "back";
    // The server stands still, and takes nothing back of what was sent to it.
    await own.admin.call("CLIENT", "PAUSE", 1_500, "ALL");
    await aborted(term);
    return "lost";
  });
  expect(await result).toEqual({ terms: 2, value: "back" });
  expect(tokens[1]).toBeGreaterThan(tokens[0] ?? 0);
  expect(errors.some((error) => error.includes("LockUnavailableError"))).toBe(true);
  expect(redis.status).toBe("ready");
});
