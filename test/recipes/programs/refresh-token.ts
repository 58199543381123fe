import { createHash } from "node:crypto";
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

/** The row of the account, in Redis here. */
async function read(account: string): Promise<Tokens> {
  const { access = "", refresh = "", expires } = await redis.hgetall(`tokens:${account}`);
  return { access, refresh, expires: Number(expires) };
}

/** UPDATE tokens SET … WHERE account = … AND refresh = old */
const UPDATE = `
  if redis.call("HGET", KEYS[1], "refresh") ~= ARGV[1] then return 0 end
  return redis.call("HSET", KEYS[1], unpack(ARGV, 2))`;

async function save(account: string, old: string, fresh: Tokens): Promise<void> {
  await redis.eval(UPDATE, 1, `tokens:${account}`, old, ...Object.entries(fresh).flat());
}

// #region token
/** For a caller whose access token has expired: one caller of all exchanges this refresh token. */
async function refreshed(account: string, old: string): Promise<Tokens> {
  const name = `refresh:${createHash("sha256").update(old).digest("hex")}`; // names are no secrets
  const { value: isSaved } = await locks.remember(name, { keep: 30_000 }, async (run) => {
    const fresh = await exchange(old, run.signal); // null: refused
    // first of all, because this is the only copy; unless the row has another token than `old` by now
    if (fresh) await save(account, old, fresh);
    return fresh !== null; // all callers get a refusal, too
  });
  if (!isSaved) throw new Error(`${account} must log in again`);
  return read(account); // the tokens are in the database only, not in the result
}
// #endregion

async function accessToken(account: string): Promise<string> {
  const { access, refresh, expires } = await read(account);
  return expires > Date.now() + 10_000 ? access : (await refreshed(account, refresh)).access;
}

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
      const { access } = await refreshed(account, `${account}.${round - 1}`);
      prove(access === got[0], `a caller that comes late with the old token gets the new one: ${access}`);
      prove(asked.get(account) === round, "and the provider does not see the old one again");
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
