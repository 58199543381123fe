import { expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { noting, outcomeOf, parked, warm } from "./steps.ts";

// Races of one place: what comes before the answer to its command, while it renews its hold for the
// next caller, while that caller waits for a turn of the event loop, or after its hold has ended.

/** ms: after that a caller gets the lock here only after a renewal. */
const STALE = 200;

test(
  "a force-release is read before the answer to the renewal for the next caller: that caller asks anew",
  scene(async (world) => {
    const [holder, admin] = world.processes(2);
    await warm(world, holder, admin);
    const held = await holder.take("lock");
    const waiting = holder.take("lock");
    await world.pass(STALE);
    const renewed = holder.on("renew").executed(() => holder.commands.freezeReplies(50));
    await held.unlock();
    await renewed;
    await admin.client.lock("lock:a").forceUnlock();
    const next = await waiting;
    expect(world.redis.holders("lock:a")).toEqual([holder.number]);
    await world.pass(STALE);
    expect(next.held).toBe(true);
    await next.unlock();
  }),
);

test(
  "a force-release is read while the next caller waits for a turn of the event loop: that caller asks anew",
  scene(async (world) => {
    const [holder, admin] = world.processes(2);
    await warm(world, holder, admin);
    const lock = holder.client.lock("lock:a");
    const held = await holder.take("lock");
    // The first one's hand-off is after a renewal, and the next one's the first of its turn.
    const first = holder.does(() => lock.withLock(() => {}));
    const second = holder.does(() =>
      lock.withLock(() => {
        void admin.client.lock("lock:a").forceUnlock();
        // Its callers have come and gone for too long, and the message comes meanwhile.
        holder.block(5);
      }),
    );
    const third = holder.take("lock");
    await world.pass(STALE);
    await held.unlock();
    await first;
    expect(await outcomeOf(second)).toBeNull();
    const next = await third;
    expect(world.redis.holders("lock:a")).toEqual([holder.number]);
    await next.unlock();
  }),
);

test(
  "the client closes during the renewal for the next caller: that caller is refused at once",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const held = await holder.take("lock");
    const waiting = outcomeOf(holder.take("lock"));
    await world.pass(STALE);
    const renewed = holder.on("renew").executed(() => holder.commands.freezeReplies(300));
    await held.unlock();
    await renewed;
    const closing = holder.does(() => holder.client.close());
    const { result, took } = await world.timed(waiting);
    expect(result).toEqual(["CLIENT_CLOSED", undefined]);
    expect(took).toBeLessThan(5);
    await closing;
    await (await other.take("lock")).unlock();
  }),
);

test(
  "a renewal of a former hold is answered 'gone' while a caller has the next one: nothing is lost",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    await warm(world, near, far);
    const { held, waiting } = await parked(world, near, [far]);
    const own = near.take("lock");
    await near.on("renew").executed(() => near.commands.freezeReplies(5_000));
    const unlocking = held.unlock();
    await (await waiting[0]).unlock();
    const mine = await own;
    near.commands.cut();
    await unlocking;
    await world.pass(STALE);
    expect(mine.held).toBe(true);
    await mine.unlock();
  }),
);

test(
  "a force-release is read before the answer that took the lock: the caller asks anew",
  scene(async (world) => {
    const [holder, admin] = world.processes(2);
    await warm(world, holder, admin);
    const taken = holder.on("acquire").executed(() => holder.commands.freezeReplies(50));
    const waiting = holder.take("lock");
    await taken;
    await admin.client.lock("lock:a").forceUnlock();
    const lease = await waiting;
    expect(world.redis.holders("lock:a")).toEqual([holder.number]);
    await world.pass(STALE);
    expect(lease.held).toBe(true);
    await lease.unlock();
  }),
);

test(
  "places whose grants are all found by re-checks keep their order before a process that came after them",
  scene(async (world) => {
    const [holder, near, far] = world.processes(3);
    await warm(world, near, holder);
    await warm(world, far, holder);
    const held = await holder.take("fairLock");
    const order: string[] = [];
    const line = noting(order, "fairLock");
    const names = Array.from({ length: 12 }, (_, i) => `${i}`);
    const waiting = names.map((name) => line(near, name));
    await world.until(() => world.redis.queue("fair:a").length === names.length);
    near.withoutMessages(600_000);
    near.heard("error");
    waiting.push(line(far, "far"));
    await world.pass(50);
    await held.unlock();
    await Promise.all(waiting);
    expect(order).toEqual([...names, "far"]);
  }),
);

test(
  "process.exit() while the next caller waits for a turn of the event loop: the lock is free at once",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    await warm(world, holder, other);
    const lock = holder.client.lock("lock:a");
    const held = await holder.take("lock");
    void holder.does(() => lock.withLock(() => {}));
    const second = holder.does(() => lock.withLock(() => holder.block(5)));
    void holder.does(() => lock.withLock(() => {}));
    void second.then(() => holder.exit());
    await world.pass(STALE);
    await held.unlock();
    await world.until(() => holder.member.process.isDead);
    await world.pass(10);
    const { result, took } = await world.timed(other.take("lock"));
    expect(took).toBeLessThan(5);
    await result.unlock();
  }),
);

/** Its caller has left, and a copy of the acquire that queued its hold is under way as text. */
async function sentAsText(world: Scene, near: SceneProcess, far: SceneProcess): Promise<void> {
  await warm(world, near, far);
  const held = await far.take("lock");
  const queued = near.on("acquire").executed(() => near.commands.cut({ back: 50 }));
  const waiting = near.take("lock");
  await queued;
  world.redis.flushScripts();
  world.redis.learnScripts({ except: "acquire" });
  await held.unlock();
  // By the message: the connection for commands is not back.
  const unlocking = (await waiting).unlock();
  await near.on("acquire").unknown();
  await unlocking;
}

test(
  "a copy of an acquire, sent again as text, takes the lock after its hold was released: it is given back",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    await sentAsText(world, near, far);
    await near.on("acquire").answered();
    await world.pass(5);
    const next = await far.tryTake("lock");
    expect(next).not.toBeNull();
    await next?.unlock();
  }),
);

test(
  "the same copy takes the lock, and its reply is lost with the connection: it is given back all the same",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    await sentAsText(world, near, far);
    near.losesCommands("fail");
    await near.on("acquire").executed(() => near.commands.cut());
    await world.pass(50);
    const next = await far.tryTake("lock");
    expect(next).not.toBeNull();
    await next?.unlock();
  }),
);

test(
  "a late copy of an acquire has reserved no token, and a re-check finds the lock: no token is given twice",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    await warm(world, near, far);
    world.redis.setBack(3_600_000);
    const [dying] = world.processes(1);
    await dying.take("lock", { lease: 1_000 });
    dying.crash();
    const sent = near.on("acquire").sent(() => near.commands.cut({ copies: 1_002 }));
    const waiting = near.take("lock");
    await sent;
    await world.until(() => world.redis.queue("lock:a").length === 1);
    world.redis.drop("lock:a", ":queue");
    const first = await waiting;
    const next = near.take("lock");
    await first.unlock();
    const second = await next;
    await second.unlock();
    const third = await far.take("lock");
    expect(second.token).toBeGreaterThan(first.token);
    expect(third.token).toBeGreaterThan(second.token);
    await third.unlock();
  }),
);

test(
  "a recall is read before the answer that took the lock: its holder knows that another process waits",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    await warm(world, near, far);
    await warm(world, far, near);
    const taken = near.on("acquire").executed(() => near.commands.freezeReplies(50));
    const own = near.take("lock");
    await taken;
    const waiting = far.take("lock");
    const mine = await own;
    expect(mine.lease.wanted.aborted).toBe(true);
    await mine.unlock();
    await (await waiting).unlock();
  }),
);

test(
  "a late copy of an acquire takes the lock for a queued hold: a recall finds it before the next re-check",
  scene(async (world) => {
    const [near, far, third] = world.processes(3);
    await warm(world, near, far);
    await warm(world, third, far);
    const held = await far.take("lock");
    const sent = near.on("acquire").sent(() => near.commands.cut({ copies: 100 }));
    const waiting = near.take("lock");
    await sent;
    await world.until(() => world.redis.queue("lock:a").length === 1);
    await world.pass(10);
    world.redis.drop("lock:a", ":queue");
    await held.unlock();
    await world.until(() => world.redis.holders("lock:a").length === 1);
    await world.pass(10);
    const next = third.take("lock");
    const { result, took } = await world.timed(waiting);
    expect(took).toBeLessThan(5);
    await result.unlock();
    await (await next).unlock();
  }),
);

test(
  "a call comes after a re-check was sent, and nothing is answered after that: it is not told 'busy'",
  scene(async (world) => {
    const [holder, near] = world.processes(2);
    const held = await holder.take("lock");
    const parked = near.take("lock");
    await near.on("recheck").executed(() => near.commands.freezeReplies(50));
    const call = outcomeOf(near.take("lock", { wait: 300 }));
    await near.on("recheck").answered();
    near.commands.freeze(2_000);
    expect(await call).toEqual(["LOCK_UNAVAILABLE", undefined]);
    await held.unlock();
    await (await parked).unlock();
  }),
);

test(
  "the renewal for the next caller is answered after the deadline: its hold is given back, and it asks anew",
  scene(async (world) => {
    const [holder] = world.processes(1);
    const held = await holder.take("lock", { lease: 1_500 });
    const waiting = holder.take("lock", { lease: 1_500 });
    await world.pass(1_000);
    const renewed = holder.on("renew").executed(() => holder.commands.freezeReplies(700));
    await held.unlock();
    await renewed;
    const { result, took } = await world.timed(waiting);
    expect(took).toBeGreaterThan(690);
    expect(took).toBeLessThan(710);
    await result.unlock();
  }),
);

test(
  "the same while the reply to a re-check is on its way: the hold is found when it comes",
  scene(async (world) => {
    const [near, far, third] = world.processes(3);
    await warm(world, near, far);
    await warm(world, third, far);
    const held = await far.take("lock");
    const sent = near.on("acquire").sent(() => near.commands.cut({ copies: 200 }));
    const waiting = near.take("lock");
    await sent;
    await world.until(() => world.redis.queue("lock:a").length === 1);
    await world.pass(100);
    // It is asked for by the place of the one that waits.
    const busy = near.tryTake("lock");
    await near.on("recheck").executed(() => near.commands.freezeReplies(200));
    world.redis.drop("lock:a", ":queue");
    await held.unlock();
    await world.until(() => world.redis.holders("lock:a").length === 1);
    const next = third.take("lock");
    const { result, took } = await world.timed(waiting);
    expect(took).toBeLessThan(200);
    expect(await busy).toBeNull();
    await result.unlock();
    await (await next).unlock();
  }),
);

test.each([
  ["after a grant whose window is too short for its lease", false],
  ["after a local hand-off", true],
] as const)(
  "a caller leaves during the renewal that is to give it the lock, %s: the next one has it",
  (_, isLocal) =>
    scene(async (world) => {
      const [near, far] = world.processes(2);
      await warm(world, near, far);
      const held = await (isLocal ? near : far).take("lock");
      const leaving = new AbortController();
      const left = outcomeOf(near.take("lock", { lease: 60_000, signal: leaving.signal }));
      await world.pass(STALE);
      const renewed = near.on("renew").executed(() => near.commands.freezeReplies(50));
      await held.unlock();
      await renewed;
      leaving.abort(new Error("enough"));
      await left;
      await world.pass(60);
      const { result, took } = await world.timed(far.take("lock"));
      expect(took).toBeLessThan(5);
      await result.unlock();
    })(),
);

test(
  "a call that does not wait loses the lock before it has it: it asks anew, and is not told 'busy'",
  scene(async (world) => {
    const [near] = world.processes(1);
    world.delay(5);
    const executed = near.on("acquire").executed(() => near.commands.freezeReplies(200));
    const call = near.tryTake("lock", { lease: 300 });
    await executed;
    await near.on("renew").sent(() => world.redis.drop("lock:a"));
    const lease = await call;
    expect(lease).not.toBeNull();
    await lease?.unlock();
  }),
);

test(
  "a call that does not wait comes while its place queues: it is told 'busy' by the answer to a re-check",
  scene(async (world) => {
    const [far, near] = world.processes(2);
    await warm(world, near, far);
    const held = await far.take("lock");
    const queued = near.on("acquire").executed(() => near.commands.freezeReplies(50));
    const waiting = near.take("lock");
    await queued;
    const { result, took } = await world.timed(near.tryTake("lock"));
    expect(result).toBeNull();
    expect(took).toBeLessThan(55);
    await held.unlock();
    await (await waiting).unlock();
  }),
);

test(
  "a renewal that was sent before a local hand-off does not confirm the next caller's token",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    await warm(world, near, far);
    const lost = near.heard("lost");
    const first = await near.take("lock");
    const callers = [near.take("lock"), near.take("lock")] as const;
    await world.pass(STALE);
    await first.unlock();
    const second = await callers[0];
    await near.on("renew").executed(() => near.commands.freezeReplies(10));
    world.redis.drop("lock:a");
    await second.unlock();
    const third = await callers[1];
    await world.until(() => !third.held);
    expect(lost).toMatchObject([{ token: third.token }]);
    expect(lost[0]?.firstToken).toBeLessThan(third.token);
    await outcomeOf(third.unlock());
  }),
);

test(
  "a queue is deleted: the first place that learns it lets all others of its process queue again at once",
  scene(async (world) => {
    const [holder, near] = world.processes(2);
    await warm(world, near, holder);
    const held = await holder.take("fairLock");
    const waiting = Array.from({ length: 4 }, () => near.take("fairLock"));
    await world.until(() => world.redis.queue("fair:a").length === 4);
    world.redis.drop("fair:a", ":queue");
    await near.on("recheck").answered();
    await world.pass(5);
    expect(world.redis.queue("fair:a")).toHaveLength(4);
    await held.unlock();
    for (const one of waiting) await (await one).unlock();
  }),
);

test(
  "a call that does not wait comes after the lock was found held, and is free: it has the lock",
  scene(async (world) => {
    const [far, near] = world.processes(2);
    const held = await far.take("lock");
    const found = near.on("acquire").executed(() => near.commands.freezeReplies(50));
    const before = near.tryTake("lock");
    await found;
    await held.unlock();
    const after = await near.tryTake("lock");
    expect(await before).toBeNull();
    expect(after).not.toBeNull();
    await after?.unlock();
  }),
);

test(
  "the first caller of a place allows no local hand-offs, and leaves: its entry has reserved no tokens",
  scene(async (world) => {
    const [far, near] = world.processes(2);
    await warm(world, near, far);
    await warm(world, far, near);
    world.redis.setBack(3_600_000);
    const held = await far.take("lock");
    const leaving = new AbortController();
    const { signal } = leaving;
    const left = outcomeOf(
      near.does(() => near.client.lock("lock:a", { localHandoffs: 0 }).lock({ signal })),
    );
    const waiting = [near.take("lock"), near.take("lock")] as const;
    await world.until(() => world.redis.queue("lock:a").length === 1);
    leaving.abort(new Error("enough"));
    await left;
    await near.on("recheck").answered();
    await held.unlock();
    const first = await waiting[0];
    await first.unlock();
    const second = await waiting[1];
    await second.unlock();
    const third = await far.take("lock");
    expect(second.token).toBeGreaterThan(first.token);
    expect(third.token).toBeGreaterThan(second.token);
    await third.unlock();
  }),
);

test(
  "messages begin to arrive while the first caller's try is on its way: a second caller queues after it",
  scene(async (world) => {
    const [holder, near] = world.processes(2);
    const held = await holder.take("fairLock");
    const order: string[] = [];
    const line = noting(order, "fairLock");
    // Its subscription is acknowledged after the first caller's try was sent, and before its answer.
    await (await near.take("lock", { name: "w" })).unlock();
    await world.pass(0.3);
    const tried = near.on("acquire").executed(() => near.commands.freezeReplies(100));
    const waiting = [line(near, "first")];
    await tried;
    await world.pass(1);
    waiting.push(line(near, "second"));
    await world.until(() => world.redis.queue("fair:a").length === 2);
    await held.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(["first", "second"]);
  }),
);

test(
  "a forged grant has the number of a queued hold, and not its secret: it is ignored",
  scene(async (world) => {
    const [far, near] = world.processes(2);
    await warm(world, near, far);
    const { held, waiting } = await parked(world, far, [near]);
    const id = world.redis.places("lock:a")[0]?.split(" ").at(-1) ?? "";
    const forged = `${id.slice(0, -13)}${"0".repeat(13)}`;
    const { sent } = near;
    const read = near.onMessage("grant");
    const channel = id.slice(0, id.lastIndexOf(":"));
    const token = held.token + 1_000;
    world.redis.publish(channel, `grant ${token} ${token} 3000 0 ${forged} holdfast:{lock:a}`);
    await read;
    await world.pass(10);
    expect(near.sent).toBe(sent);
    expect(world.redis.holders("lock:a")).toEqual([far.number]);
    await held.unlock();
    expect((await waiting[0]).token).not.toBe(token);
    await (await waiting[0]).unlock();
  }),
);

test.each(["was yielded", "was taken away", "had no caller"] as const)(
  "a copy of an acquire that queued, sent again as text, takes the lock after its hold %s: it is given back",
  (end) =>
    scene(async (world) => {
      const [near, far] = world.processes(2, { localHandoffs: 0 });
      await warm(world, near, far);
      await warm(world, far, near);
      const held = await far.take("lock");
      const leaving = new AbortController();
      const queued = near.on("acquire").executed(() => near.commands.cut({ back: 50 }));
      const waiting = near.take("lock", { signal: leaving.signal });
      await queued;
      // The answer that Redis does not know its script comes when all else is over.
      const unknown = near.on("acquire").unknown(() => near.commands.freezeReplies(1_000));
      const over: Promise<unknown>[] = [];
      if (end === "had no caller") {
        leaving.abort(new Error("enough"));
        await outcomeOf(waiting);
        await held.unlock();
      } else {
        await held.unlock();
        // By the message: the connection for commands is not back.
        const mine = await waiting;
        if (end === "was taken away") {
          await far.does(() => far.client.lock("lock:a").forceUnlock());
          await world.until(() => !mine.held);
        } else {
          over.push(far.take("lock").then((lease) => lease.unlock()));
          await world.until(() => world.redis.queue("lock:a").length === 1);
          over.push(near.take("lock").then((lease) => lease.unlock()));
        }
        over.push(outcomeOf(mine.unlock()));
      }
      world.redis.flushScripts();
      world.redis.learnScripts({ except: "acquire" });
      await unknown;
      await Promise.all(over);
      await near.on("acquire").answered();
      await world.pass(5);
      const next = await far.tryTake("lock");
      expect(next).not.toBeNull();
      await next?.unlock();
    })(),
);
