// POST /payments with an `Idempotency-Key`, as in the IETF draft: the first request with a key runs,
// and later ones get its reply; 409 while it runs, 422 if the key comes with another body.
//
// Needs a Redis: REDIS_URL, or redis://127.0.0.1:6379.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { createLockClient } from "holdfast";
import { Redis } from "ioredis";

interface Reply {
  readonly status: number;
  readonly body: string;
}
type Handler = (body: string, how: { key: string; signal: AbortSignal }) => Promise<Reply>;

const DAY = 86_400_000;
const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const locks = createLockClient(redis);

/** Any handler, such that it runs once for each key. */
function idempotent(handler: Handler) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const key = request.headers["idempotency-key"];
    const body = await text(request);
    const answer = (reply: Reply, isReplay = false): void => {
      if (isReplay) response.setHeader("Idempotent-Replayed", "true");
      response.writeHead(reply.status, { "content-type": "application/json" }).end(reply.body);
    };
    if (typeof key !== "string" || key === "" || key.length > 100)
      return answer({ status: 400, body: '{"error":"an Idempotency-Key is needed"}' });

    // In a service with users, the key belongs to one of them: `${user}:${key}`.
    const record = `idempotency:${key}`;
    const print = createHash("sha256").update(`${request.url}\n${body}`).digest("hex");
    const remembered = async (): Promise<Reply | null> => {
      const found = JSON.parse((await redis.get(record)) ?? "null");
      if (found && found.print !== print)
        return { status: 422, body: '{"error":"this key was used for another request"}' };
      return found?.reply ?? null;
    };

    const early = await remembered();
    if (early) return answer(early, early.status !== 422);
    await using lease = await locks.lock(record).tryLock();
    if (!lease) return answer({ status: 409, body: '{"error":"the first request with this key runs"}' });
    const late = await remembered(); // it ended between the question and the lock
    if (late) return answer(late, late.status !== 422);
    const reply = await handler(body, { key, signal: lease.signal });
    // An error of the server is not remembered: the client may try again with the same key.
    if (reply.status >= 500) return answer(reply);
    // NX: if the lock was lost and another request ran, its reply stays the only one.
    await redis.set(record, JSON.stringify({ print, reply }), "PX", DAY, "NX");
    answer((await remembered()) ?? reply);
  };
}

let payments = 0;

/** It passes the key on: if this process dies here, the provider knows what it has done. */
const pay: Handler = async (body, { signal }) => {
  await setTimeout(100, undefined, { signal });
  return { status: 201, body: JSON.stringify({ payment: ++payments, of: JSON.parse(body).amount }) };
};

async function listen(handler: ReturnType<typeof idempotent>): Promise<[Server, string]> {
  const server = createServer((request, response) => {
    handler(request, response).catch((error: Error) => {
      // Redis is away, or the lock was lost: nothing is known, and the client may ask again.
      console.error(error.message);
      if (!response.headersSent) response.writeHead(503).end();
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return [server, `http://127.0.0.1:${(server.address() as AddressInfo).port}/payments`];
}

const [server, url] = await listen(idempotent(pay));
const post = async (key: string, amount: number) => {
  const headers = { "idempotency-key": key };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ amount }) });
  const told = `${response.status} ${await response.text()}`;
  console.log(key.slice(-5), amount, told, response.headers.get("idempotent-replayed") ? "(again)" : "");
  return told;
};

const key = `${process.pid}-key-1`;
const both = await Promise.all([post(key, 42), post(key, 42)]);
assert.deepEqual(both.map((told) => told.slice(0, 3)).sort(), ["201", "409"], "one runs");
const first = both.find((told) => told.startsWith("201"));
assert.equal(await post(key, 42), first, "a later request gets the same reply");
assert.match(await post(key, 43), /^422/, "a key belongs to one request");
assert.equal(payments, 1, "one payment");
assert.match(await post(`${process.pid}-key-2`, 43), /^201/);
assert.match(await post("", 43), /^400/);

server.close();
await redis.del(`idempotency:${key}`, `idempotency:${process.pid}-key-2`);
await locks.close(); // before its connection
await redis.quit();
