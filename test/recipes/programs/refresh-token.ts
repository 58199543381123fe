import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createLockClient } from "holdfast";
import { connect, figure, ms, prove, startProcess, until } from "./support.ts";

interface Tokens {
  readonly access: string;
  /** Works once: its answer has the next one. */
  readonly refresh: string;
  /** When the access token ends, by `Date.now()`. */
  readonly expires: number;
}

const redis = connect();
const [, , role, address] = process.argv;
/** Short where the process is to die or stop: the others wait for that long. */
const leaseTime = role === "victim" || role === "sleeper" ? 2_000 : 30_000;
const locks = createLockClient(redis, { leaseTime });

/** The request of OAuth: null when the refresh token was spent before (invalid_grant). */
async function exchange(refresh: string, signal: AbortSignal): Promise<Tokens | null> {
  const response = await fetch(`${address}/${refresh}`, { method: "POST", signal });
  const tokens = response.ok ? ((await response.json()) as Tokens) : null;
  if (role === "victim") process.kill(process.pid, "SIGKILL"); // only it has the answer
  if (role === "sleeper") process.kill(process.pid, "SIGSTOP");
  return tokens;
}

// #region token
/** Stores what came for a refresh token, unless a newer one is there: HSET of the fields in ARGV. */
const STORE = `
  if redis.call("HGET", KEYS[1], "refresh") ~= ARGV[1] then return 0 end
  return redis.call("HSET", KEYS[1], unpack(ARGV, 2))`;

async function accessToken(account: string): Promise<string> {
  const key = `tokens:${account}`;
  const stored = await redis.hgetall(key);
  if (Number(stored.expires) > Date.now() + 10_000) return String(stored.access);
  return locks.lock(key).withLock({ wait: 30_000 }, async (lease) => {
    // again, because another process may have refreshed while this one waited
    const { access, refresh = "", refused, expires } = await redis.hgetall(key);
    if (Number(expires) > Date.now() + 10_000) return String(access);
    if (refused === refresh) throw new Error(`${account} must log in again`);
    const fresh = await exchange(refresh, lease.signal); // null: refused
    // also when the lock is lost: this is the only copy
    await redis.eval(STORE, 1, key, refresh, ...Object.entries(fresh ?? { refused: refresh }).flat());
    if (!fresh) throw new Error(`${account} must log in again`);
    return fresh.access;
  });
}
// #endregion

if (role !== undefined) {
  const [, , , , account = ""] = process.argv;
  const answers = await Promise.all(
    Array.from({ length: 25 }, () => accessToken(account).catch(({ message }: Error) => message)),
  );
  await redis.rpush(`answers:${account}`, ...answers);
  await locks.close();
  await redis.quit();
  process.disconnect?.();
} else {
  // The provider: a refresh token works once. "forgiving" answers a repetition as it did before.
  const answers = new Map<string, string>();
  const asked = new Map<string, number>();
  const provider = createServer((request, response) => {
    const refresh = String(request.url).slice(1);
    const [account = "", step = 0] = refresh.split(".");
    asked.set(account, (asked.get(account) ?? 0) + 1);
    const known = answers.get(refresh);
    const next = Number(step) + 1;
    const fresh = {
      access: `${account}-access-${next}`,
      refresh: `${account}.${next}`,
      expires: Date.now() + 3_600_000,
    };
    answers.set(refresh, known ?? JSON.stringify(fresh));
    if (known && !account.startsWith("forgiving")) response.writeHead(400).end("invalid_grant");
    else response.end(answers.get(refresh));
  }).listen(0, "127.0.0.1");
  await once(provider, "listening");
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;

  const run = async (account: string, roles: string[]): Promise<string[]> => {
    await redis.del(`answers:${account}`);
    const fleet = roles.map((role) => startProcess(import.meta.url, role, url, account));
    await Promise.all(fleet.map((child) => child.exitCode ?? once(child, "exit")));
    return redis.lrange(`answers:${account}`, 0, -1);
  };
  const expire = (account: string): Promise<number> => redis.hset(`tokens:${account}`, "expires", 0);
  const login = (account: string): Promise<number> =>
    redis.hset(`tokens:${account}`, { access: `${account}-access-0`, refresh: `${account}.0`, expires: 0 });

  const accounts = ["strict", "strict-crash", "forgiving-crash", "strict-stop", "forgiving-stop"];
  for (const account of accounts) {
    await redis.del(`tokens:${account}`);
    await login(account);
  }

  const crash = async (account: string): Promise<string[]> => {
    const victim = startProcess(import.meta.url, "victim", url, account);
    await until("the provider was asked", () => asked.get(account) === 1);
    if (victim.exitCode === null && victim.signalCode === null) await once(victim, "exit");
    const began = performance.now();
    const got = await run(account, ["process", "process"]);
    figure(
      `${account}: answers after the crash of the process that refreshed`,
      ms(performance.now() - began),
    );
    return got;
  };
  /** A process stops with the provider's answer in its hand, and goes on much later. */
  const stop = async (account: string, between: () => Promise<void>): Promise<string[]> => {
    const sleeper = startProcess(import.meta.url, "sleeper", url, account);
    await until("the provider was asked", () => asked.get(account) === 1);
    await between();
    const end = once(sleeper, "exit");
    const going = setInterval(() => sleeper.kill("SIGCONT"), 20);
    await end;
    clearInterval(going);
    return run(account, ["process"]);
  };
  const twice = async (account: string): Promise<void> => {
    for (const round of [1, 2]) {
      const got = await run(account, ["process", "process", "process", "process"]);
      prove(
        got.length === 100 && new Set(got).size === 1,
        `100 callers get one result: ${[...new Set(got)]}`,
      );
      prove(got[0] === `${account}-access-${round}`, `it is that of the refresh: ${got[0]}`);
      prove(asked.get(account) === round, `one refresh each time (${asked.get(account)} of ${round})`);
      await expire(account);
    }
  };
  const [, refused, repeated, late, older] = await Promise.all([
    twice("strict"),
    crash("strict-crash"),
    crash("forgiving-crash"),
    stop("strict-stop", async () => {
      const got = await run("strict-stop", ["process"]);
      prove(got[0] === "strict-stop must log in again", `meanwhile the token is spent: ${got[0]}`);
    }),
    stop("forgiving-stop", async () => {
      await run("forgiving-stop", ["process"]);
      await expire("forgiving-stop");
      const got = await run("forgiving-stop", ["process"]);
      prove(got[0] === "forgiving-stop-access-2", `meanwhile there was another refresh: ${got[0]}`);
    }),
  ]);
  prove(late[0] === "strict-stop-access-1", `a late answer still counts: ${late[0]}`);
  prove(older[0] === "forgiving-stop-access-2", `but replaces no newer one: ${older[0]}`);
  prove(
    refused.length === 50 && refused.every((text) => text === "strict-crash must log in again"),
    `the token that died with its process is gone, and all are told: ${refused[0]}`,
  );
  prove(asked.get("strict-crash") === 2, "the spent token is shown once more, and not by each caller");
  prove(
    repeated.length === 50 && repeated.every((text) => text === "forgiving-crash-access-1"),
    `a provider that repeats its answer brings it back: ${repeated[0]}`,
  );
  for (const account of accounts) await redis.del(`tokens:${account}`, `answers:${account}`);
  provider.close();
  await locks.close();
  await redis.quit();
}
