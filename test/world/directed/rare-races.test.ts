import { expect, test } from "vitest";
import { scene } from "./scene.ts";

// Races that random runs meet rarely.

test(
  "a grant message is lost in a reconnect while the reply to a re-check is on its way: the waiter re-checks when it comes",
  scene(async (world) => {
    const [holder, waiter] = world.processes(2);
    const lease = await holder.take("lock");
    const waiting = waiter.take("lock");
    await waiter.on("recheck").executed(() => waiter.commands.freezeReplies(400));
    waiter.messages.cut({ noticed: 300 });
    await lease.unlock();
    const { result, took } = await world.timed(waiting);
    expect(took).toBeGreaterThan(350);
    expect(took).toBeLessThan(450);
    await result.unlock();
  }),
);

test(
  "the withdrawal of a failed acquire fails too: it is repeated when there is a connection again",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const executed = one.on("acquire").executed(() => one.commands.freeze(12_000));
    const call = one.tryTake("lock");
    await executed;
    await expect(call).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    // The acquire is given up after replyTimeout, and so is its withdrawal after that.
    await world.pass(10_000);
    one.commands.cut({ copies: "lost" });
    const { result, took } = await world.timed(other.take("lock"));
    expect(took).toBeLessThan(2_500);
    await result.unlock();
  }),
);

test(
  "a reader comes in the turn in which the last one leaves: it has the hold, which stays",
  scene(async (world) => {
    const [reader, writer] = world.processes(2);
    const [one, other] = await Promise.all([reader.take("read"), reader.take("read")]);
    await one.unlock();
    const left = other.unlock();
    const third = await reader.take("read");
    await left;
    await world.pass(100);
    expect(third.held).toBe(true);
    expect(await writer.tryTake("write")).toBeNull();
    await third.unlock();
  }),
);

test(
  "a call comes while others wait here and Redis is silent: it is unavailable, and not busy by an answer from before",
  scene(async (world) => {
    const [holder, waiter] = world.processes(2);
    const lease = await holder.take("lock");
    const parked = waiter.take("lock");
    await world.pass(100);
    waiter.commands.freeze(2_000);
    await expect(waiter.take("lock", { wait: 300 })).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await lease.unlock();
    await (await parked).unlock();
  }),
);

test.each(["redissonLock", "redissonFencedLock"] as const)(
  "%s: its release is read before the answer to a try that found it held: the waiter tries again",
  (kind) =>
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      const lease = await holder.take(kind);
      const waiting = waiter.take(kind);
      // The try before its subscription, and the one after it.
      await waiter.on("acquire").answered();
      await waiter.on("acquire").executed(() => waiter.commands.freezeReplies(50));
      await lease.unlock();
      const { result, took } = await world.timed(waiting);
      expect(took).toBeLessThan(100);
      await result.unlock();
    })(),
);

test(
  "an acquire that queues comes again after its reply was lost: its waiter keeps its place",
  scene(async (world) => {
    const [holder, first, second] = world.processes(3);
    const lease = await holder.take("lock");
    const before = first.take("lock");
    // The try before its subscription, and the command that queues it.
    await first.on("acquire").answered();
    await first.on("acquire").executed(() => first.commands.cut({ copies: "arrive", back: 200 }));
    const after = second.take("lock");
    await world.until(() => world.redis.queue("lock:a").length === 2);
    await first.on("acquire").executed();
    expect(world.redis.queue("lock:a")).toEqual([first.number, second.number]);
    await lease.unlock();
    await (await before).unlock();
    await (await after).unlock();
  }),
);

test(
  "the server's clock is set back after local hand-offs: the next holder's token is above those of all of them",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    const held = await far.take("lock");
    const waiting = Array.from({ length: 5 }, () => near.take("lock"));
    await world.until(() => world.redis.queue("lock:a").length === 1);
    await held.unlock(); // their entry reserves tokens
    const tokens: number[] = [];
    for (const one of waiting) {
      const lease = await one;
      tokens.push(lease.token);
      if (tokens.length === waiting.length) world.redis.setBack(1_000);
      await lease.unlock();
    }
    const last = await far.take("lock");
    tokens.push(last.token);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    await last.unlock();
  }),
);

test(
  "no token is left when the holder leaves: the waiters keep their places, and have their turns after the repair",
  scene(async (world) => {
    const [holder, first, second] = world.processes(3);
    const lease = await holder.take("lock");
    const before = first.take("lock");
    await world.until(() => world.redis.queue("lock:a").length === 1);
    const after = second.take("lock");
    await world.until(() => world.redis.queue("lock:a").length === 2);
    world.redis.overwrite("holdfast:clock", String(Number.MAX_SAFE_INTEGER));
    await lease.unlock();
    expect(world.redis.queue("lock:a")).toEqual([first.number, second.number]);
    world.redis.dropKey("holdfast:clock");
    await (await before).unlock();
    await (await after).unlock();
  }),
);

test.each(["lock", "fair read"] as const)(
  "%s: a re-check is answered 'owner' after the release was sent, whose script Redis has forgotten: no loss is reported",
  (kind) =>
    scene(async (world) => {
      const [holder, waiter, other] = world.processes(3);
      const write = kind === "lock" ? "lock" : "fair write";
      const [lease, elsewhere] = [await holder.take(write), await holder.take(write, { name: "b" })];
      const waiting = waiter.take(kind);
      const { signal, abort } = abortable();
      const leaving = other.take(kind, { name: "b", signal });
      await world.pass(100);
      waiter.messages.freezeReplies(20);
      waiter.commands.cut({ back: 5 });
      const checked = waiter.on("recheck").executed(() => waiter.commands.freezeReplies(30));
      await lease.unlock();
      await checked;
      // By the message: the reply is still on its way.
      const mine = await waiting;
      world.redis.flushScripts();
      const left = mine.unlock();
      // So Redis knows the script of a withdrawal.
      abort();
      await expect(leaving).rejects.toThrow("enough");
      await left;
      await elsewhere.unlock();
    })(),
);

test.each(["lock", "fair write"] as const)(
  "%s: a grant is read after the release was sent, whose script Redis has forgotten: no loss is reported",
  (kind) =>
    scene(async (world) => {
      const [holder, waiter, other] = world.processes(3);
      const [lease, elsewhere] = [await holder.take(kind), await holder.take(kind, { name: "b" })];
      const waiting = waiter.take(kind);
      const { signal, abort } = abortable();
      const leaving = other.take(kind, { name: "b", signal });
      await world.pass(100);
      waiter.messages.freezeReplies(60);
      const checked = waiter.on("recheck").executed();
      await lease.unlock();
      await world.pass(50);
      // A look at what it has found tells the waiter of its grant, before the message does.
      waiter.commands.cut({ back: 1 });
      await checked;
      const mine = await waiting;
      world.redis.flushScripts();
      waiter.commands.freezeReplies(30);
      const left = mine.unlock();
      // So Redis knows the script of a withdrawal.
      abort();
      await expect(leaving).rejects.toThrow("enough");
      await left;
      await elsewhere.unlock();
    })(),
);

function abortable(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(new Error("enough")) };
}

test(
  "the server's clock goes back, and a caller comes while the only one is inside: it gets a token that no other caller gets",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await (await one.take("lock")).unlock();
    // From now on a token is one more than the last, however much time has passed.
    world.redis.setBack(3_600_000);
    const first = await one.take("lock");
    const next = one.take("lock");
    await first.unlock();
    const second = await next;
    await second.unlock();
    const third = await other.take("lock");
    expect(second.token).toBeGreaterThan(first.token);
    expect(third.token).toBeGreaterThan(second.token);
    await third.unlock();
  }),
);

test(
  "an abandoned acquire finds that Redis has forgotten its script: it is not sent again as text",
  scene(async (world) => {
    const [near] = world.processes(1);
    world.redis.flushScripts();
    world.redis.learnScripts({ except: "acquire" });
    const { network } = near.member;
    const { onStep } = network;
    const texts: string[] = [];
    network.onStep = (step, call, reply) => {
      if (step === "sent" && call.name === "eval") texts.push(call.script.name);
      onStep(step, call, reply);
    };
    near.commands.freeze(7_000);
    await expect(near.tryTake("lock")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await near.on("acquire").unknown();
    await world.pass(1_000);
    expect([texts, world.redis.keys("lock:a")]).toEqual([[], []]);
  }),
);
