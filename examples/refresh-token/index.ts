// A refresh token of OAuth works once. 30 callers in five processes want new tokens at the same time,
// and the provider ends all sessions of an account that shows a refresh token twice.
//
// Needs a Redis: REDIS_URL, or redis://127.0.0.1:6379.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createLockClient } from "holdfast";
import { Redis } from "ioredis";

interface Tokens {
  readonly access: string;
  readonly refresh: string;
}

const [, , role, provider = ""] = process.argv;
const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const locks = createLockClient(redis);

/** The row of the account in the database, in Redis here. */
const keyOf = (account: string): string => `example:tokens:${account}`;

async function read(account: string): Promise<Tokens> {
  const { access = "", refresh = "" } = await redis.hgetall(keyOf(account));
  return { access, refresh };
}

/** UPDATE tokens SET … WHERE account = … AND refresh = old: a late process replaces no newer tokens. */
const UPDATE = `
  if redis.call("HGET", KEYS[1], "refresh") ~= ARGV[1] then return 0 end
  return redis.call("HSET", KEYS[1], "access", ARGV[2], "refresh", ARGV[3])`;

async function write(account: string, old: string, { access, refresh }: Tokens): Promise<void> {
  await redis.eval(UPDATE, 1, keyOf(account), old, access, refresh);
}

/** Asks the provider. Null: it refuses. */
async function exchange(refresh: string, signal: AbortSignal): Promise<Tokens | null> {
  const response = await fetch(provider, { method: "POST", body: refresh, signal });
  return response.ok ? ((await response.json()) as Tokens) : null;
}

/** The tokens that replace this refresh token: one caller of all exchanges it. */
async function refreshed(account: string, old: string): Promise<Tokens> {
  const name = `refresh:${createHash("sha256").update(old).digest("hex")}`; // names are no secrets
  const { value: isWritten } = await locks.remember(name, { keep: 30_000 }, async (run) => {
    const fresh = await exchange(old, run.signal);
    if (fresh) await write(account, old, fresh); // first of all, because this is the only copy
    return fresh !== null; // all callers get a refusal, too
  });
  if (!isWritten) throw new Error(`${account} must log in again`);
  return read(account); // the tokens are in the database only, not in the result
}

if (role === "service") {
  process.on("message", async ([account, old]: [string, string]) => {
    const callers = Array.from({ length: 6 }, () => refreshed(account, old).catch(() => null));
    process.send?.(await Promise.all(callers));
  });
  process.send?.("ready");
  await once(process, "disconnect");
} else {
  /** How often the provider saw each refresh token. */
  const shown = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const refresh = String(await request.setEncoding("utf8").reduce((all, part) => all + part, ""));
    const times = (shown.get(refresh) ?? 0) + 1;
    shown.set(refresh, times);
    // Shown twice: it is stolen, and all tokens of the account end.
    const [account, step] = refresh.split(".");
    const next = Number(step) + 1;
    if (times > 1) response.writeHead(400).end("invalid_grant");
    else response.end(JSON.stringify({ access: `access ${account} ${next}`, refresh: `${account}.${next}` }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const services = Array.from({ length: 5 }, () => fork(new URL(import.meta.url), ["service", url]));
  for (const one of services) one.once("exit", (code) => code && process.exit(code));
  await Promise.all(services.map((one) => once(one, "message")));
  /** Six callers in each of these processes. */
  const ask = async (account: string, old: string, of = services): Promise<(Tokens | null)[]> => {
    const answers = of.map(async (one): Promise<(Tokens | null)[]> => (await once(one, "message"))[0]);
    for (const one of of) one.send([account, old]);
    return (await Promise.all(answers)).flat();
  };

  const account = `alice-${process.pid}`;
  const [first, second, third] = [0, 1, 2].map((step) => ({
    access: `access ${account} ${step}`,
    refresh: `${account}.${step}`,
  }));
  assert.ok(first && second && third);
  await redis.hset(keyOf(account), first); // the login

  const all = await ask(account, first.refresh);
  assert.equal(all.length, 30);
  for (const tokens of all) assert.deepEqual(tokens, second, "each caller has the new tokens");
  assert.deepEqual(await read(account), second, "and the database");
  assert.equal(shown.get(first.refresh), 1, "the provider saw the old token once");
  console.log("30 callers, 5 processes: one refresh, and all have the new tokens");

  const late = await ask(account, first.refresh, services.slice(0, 1));
  for (const tokens of late)
    assert.deepEqual(tokens, second, "also a caller that comes late with the old token");
  assert.equal(shown.get(first.refresh), 1, "the provider has not seen it again");
  console.log("a caller that comes late with the old token: the new tokens");

  for (const tokens of await ask(account, second.refresh)) assert.deepEqual(tokens, third);
  assert.deepEqual([...shown.values()], [1, 1], "no token was shown twice");
  console.log("the next refresh: one again");

  // What `remember` has prevented.
  const twice = await fetch(url, { method: "POST", body: first.refresh });
  assert.equal(twice.status, 400);

  for (const one of services) one.disconnect();
  server.close();
  for (const { refresh } of [first, second])
    await locks.forget(`refresh:${createHash("sha256").update(refresh).digest("hex")}`);
  await redis.del(keyOf(account));
}
await locks.close(); // before its connection
await redis.quit();
