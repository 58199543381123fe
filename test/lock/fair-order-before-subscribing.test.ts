import { afterAll, expect, it, onTestFinished } from "vitest";
import { freshName, Parties, type Party, testUrl } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { staysQuiet } from "../support/quiet.ts";
import { runs } from "../support/stage.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Callers of a fair lock who come before their client hears anything: in order, and never worse off
// than by asking.

const parties = new Parties();
staysQuiet();
afterAll(parties.close);

it("callers are served in the order of arrival, including the first one, which tried", async () => {
  const [holder, cold] = [await parties.join(), await parties.join()];
  const name = freshName();
  const held = await holder.locks.fairLock(name).lock();
  const order: number[] = [];
  const waiting = Array.from({ length: 20 }, (_, i) =>
    cold.locks.fairLock(name).withLock(() => void order.push(i)),
  );
  await until(async () => (await holder.locks.lock(name).inspect()).waiters?.length === 20);
  await held.unlock();
  await Promise.all(waiting);
  expect(order).toEqual([...order.keys()]);
});

it("callers are served in that order even if some of them try while SUBSCRIBE is slow", async () => {
  const { hostname: host, port } = new URL(testUrl());
  const proxy = await TcpProxy.start({ host, port: Number(port) });
  onTestFinished(() => proxy.stop());
  const [holder, cold] = [await parties.join(), await parties.join({ url: proxy.url })];
  const name = freshName();
  const held = await holder.locks.fairLock(name).lock();
  const order: string[] = [];
  const call = (who: string) => cold.locks.fairLock(name).withLock(() => void order.push(who));
  proxy.record();
  const tries = () => proxy.commands.filter(({ command }) => runs("acquire", "try")(command)).length;
  // What the subscription is tested with comes back after 150 ms. The first has tried by then; the
  // second has, too, after 100 ms, and has no answer; the third has not.
  proxy.delay(150, { direction: "to client", which: "commands" });
  const waiting = [call("first"), call("second")];
  await until(() => tries() >= 2, { what: "the second one's try" });
  waiting.push(call("third"));
  await until(async () => (await holder.locks.lock(name).inspect()).waiters?.length === 3);
  proxy.delay(0);
  await held.unlock();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second", "third"]);
});

it("a caller keeps a lock that its try has won, though the answer comes after the subscription", async () => {
  const { hostname: host, port } = new URL(testUrl());
  const proxy = await TcpProxy.start({ host, port: Number(port) });
  onTestFinished(() => proxy.stop());
  const [other, cold] = [await parties.join(), await parties.join({ url: proxy.url })];
  const lock = new Onlooker(other.redis, freshName());
  const order: string[] = [];
  const call = ({ locks }: Party, who: string) =>
    locks.fairLock(lock.name).withLock(() => void order.push(who));
  proxy.partition("subscribers");
  const held = await other.locks.fairLock(lock.name).lock();
  const isTold = new Promise((told) => cold.locks.once("wait", told));
  const waiting = [call(cold, "first")];
  await isTold; // that it is held; it subscribes
  // From now on tries are executed at once, and answered when the subscription is long acknowledged.
  proxy.delay(1_000, { direction: "to client", which: "commands" });
  await held.unlock();
  await until(async () => (await lock.holder()).includes(cold.locks.id), { what: "a try to win" });
  waiting.push(call(other, "second"));
  await lock.queued(1);
  waiting.push(call(cold, "third")); // waits for the subscription only
  proxy.thaw();
  await until(async () => (await other.redis.pubsub("CHANNELS", `*${cold.locks.id}*`)).length > 0);
  proxy.delay(0);
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second", "third"]);
});
