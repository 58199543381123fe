// POST /payments with an `Idempotency-Key`, as in the IETF draft: the first request with a key runs,
// and later ones get its reply; 409 while it runs, 422 if the key comes with another body. With
// node:http, Fastify and NestJS.
//
// Needs a Redis: REDIS_URL, or redis://127.0.0.1:6379.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createLockClient } from "holdfast";
import { Redis } from "ioredis";
import { type Bank, type Order, Payments, type Reply } from "./payments.ts";
import { type Running, withFastify, withNest, withNodeHttp } from "./servers.ts";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const locks = createLockClient(redis);

/** It charges at the event "open", so that a test can send requests meanwhile. */
class SlowBank extends EventEmitter implements Bank {
  readonly keys: string[] = [];

  async charge({ amount }: Order, { idempotencyKey }: { idempotencyKey: string }): Promise<Reply> {
    this.keys.push(idempotencyKey);
    const open = once(this, "open");
    this.emit("asked");
    await open;
    if (amount < 0) throw new Error("the bank is away");
    if (amount > 1_000) return { status: 402, body: { error: "too much for this card" } };
    return { status: 201, body: { payment: this.keys.length, of: amount } };
  }
}

async function visit(server: string, start: (payments: Payments) => Promise<Running>): Promise<void> {
  const bank = new SlowBank();
  const { url, close } = await start(new Payments(locks, bank));
  const names = new Set<string>();

  const post = async (account: string, key: string, amount: number): Promise<string> => {
    names.add(`pay:${account}:${key}`);
    const headers = { "x-account": account, "idempotency-key": key, "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ amount }) });
    const again = response.headers.has("idempotent-replayed") ? " (again)" : "";
    return `${response.status} ${await response.text()}${again}`;
  };
  /** The bank is asked, and answers. */
  const paid = async (account: string, key: string, amount: number): Promise<string> => {
    const asked = once(bank, "asked");
    const reply = post(account, key, amount);
    await asked;
    bank.emit("open");
    return reply;
  };

  const key = `${server}-${process.pid}`;
  const asked = once(bank, "asked");
  const first = post("alice", key, 42);
  await asked;
  assert.match(await post("alice", key, 42), /^409 /, "the first request with this key runs");
  bank.emit("open");
  const reply = await first;
  assert.equal(reply, '201 {"payment":1,"of":42}');
  assert.equal(await post("alice", key, 42), `${reply} (again)`, "a later request gets the same reply");
  assert.match(await post("alice", key, 43), /^422 /, "a key belongs to one request");
  assert.match(await post("alice", "", 42), /^400 /);
  assert.equal(bank.keys.length, 1, "one payment");

  assert.match(await paid("bob", key, 7), /^201 /, "and to one account");
  const refusal = await paid("alice", `${key}-2`, 2_000);
  assert.match(refusal, /^402 /);
  assert.equal(await post("alice", `${key}-2`, 2_000), `${refusal} (again)`, "a refusal is a reply, too");
  assert.match(await paid("alice", `${key}-3`, -1), /^500 /, "an error is not remembered");
  assert.match(await paid("alice", `${key}-3`, 44), /^201 /, "so the client may try again");
  assert.equal(bank.keys.length, 5);

  await close();
  for (const name of names) await locks.forget(name);
  console.log(`${server}: 201, then 409 while it runs, 201 again, 422 for another body`);
}

await visit("node:http", withNodeHttp);
await visit("Fastify", withFastify);
await visit("NestJS", withNest);
await locks.close(); // before its connection
await redis.quit();
