import { once } from "node:events";
import { createServer, get, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createLockClient, LockUnavailableError } from "holdfast";
import { connect, figure, ms, prove, sleep, until } from "./support.ts";

const redis = connect();
const locks = createLockClient(redis);

let charging = 0;
let charged = 0;
const paid = new Set<string>();
const isPaid = async (order: string): Promise<boolean> => paid.has(order);

/** How long a charge takes, in ms. */
let slow = 500;

/** Takes its time, or ends when the signal says so. */
async function charge(
  order: string,
  { signal }: { signal: AbortSignal; idempotencyKey: string },
): Promise<void> {
  charging++;
  try {
    await sleep(slow, undefined, { signal });
    charged++;
    paid.add(order);
  } finally {
    charging--;
  }
}

// #region handler
async function pay(order: string, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("the client has gone")));

  await using lease = await locks.lock(`order:${order}`).tryLock({ wait: 200, signal: gone.signal });
  if (!lease) {
    response.writeHead(409).end("another request is paying this order");
    return;
  }
  const signal = AbortSignal.any([gone.signal, lease.signal]); // the client has gone, or the lock is lost
  // RACE: the request before this one has paid, and was quicker than `wait`. A lock makes requests
  // take turns; it does not remember.
  if (!(await isPaid(order))) {
    lease.assertHeld(); // right before what cannot be undone
    await charge(order, { signal, idempotencyKey: order });
  }
  response.end("paid");
}

const server = createServer((request, response) => {
  pay(String(request.url).slice(1), response).catch((error: Error) => {
    console.error(error.message);
    if (!response.destroyed) response.writeHead(error instanceof LockUnavailableError ? 503 : 500).end();
  });
});
// #endregion
const failures: string[] = [];
console.error = (message: string): void => void failures.push(message);
server.listen(0, "127.0.0.1");
await once(server, "listening");
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const answers = await Promise.all([fetch(`${address}/42`), fetch(`${address}/42`)]);
prove(
  answers
    .map(({ status }) => status)
    .sort()
    .join() === "200,409",
  "of two requests one pays and one hears 409",
);
prove(failures.length === 0 && charged === 1, "busy is no error, and the order is paid once");

// A client whose request waits for the lock goes: the request waits no longer.
const told: string[] = [];
locks.on("wait", () => told.push("wait")).on("giveup", ({ why }) => told.push(why));
const first = fetch(`${address}/43`);
await until("the first one charges", () => charging === 1);
const second = get(`${address}/43`).on("error", () => {});
await until("the second one waits", () => told.join() === "wait");
second.destroy();
await until("it waits no longer", () => told.join() === "wait,aborted");
prove((await first).status === 200 && charged === 2, "the holder is not disturbed");
prove(failures.join() === "the client has gone", "the call that waited rejects with the signal's reason");

// A client whose order is being charged goes: the work ends, and the lock is free at once.
const third = get(`${address}/44`).on("error", () => {});
await until("it charges", () => charging === 1);
const since = performance.now();
third.destroy();
await until("the lock is free", async () => !(await locks.lock("order:44").isLocked()));
figure("lock free after the client has gone", ms(performance.now() - since));
prove(charged === 2 && charging === 0, "the work was ended");

// A charge that is quicker than `wait`: the second request gets the lock, and does not pay again.
slow = 20;
const both = await Promise.all([fetch(`${address}/45`), fetch(`${address}/45`)]);
prove(
  both.every(({ status }) => status === 200) && charged === 3,
  "the second of two quick ones does not pay again",
);

server.close();
await locks.close();
await redis.quit();
