import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createLockClient, FingerprintError, LockTimeoutError, LockUnavailableError } from "holdfast";
import { connect, figure, ms, prove, startProcess, until, word } from "./support.ts";

interface Reply {
  readonly status: number;
  readonly body: string;
}

const redis = connect();
const [, , role] = process.argv;
/** Short where the process is to die or stop: the others wait for that long. */
const leaseTime = role === "victim" || role === "sleeper" ? 2_000 : 30_000;
const locks = createLockClient(redis, { leaseTime });

/** The bank, in Redis here. It makes one charge for each key, and answers once the test lets it. */
async function charge(
  amount: string,
  { idempotencyKey: key }: { idempotencyKey: string; signal: AbortSignal },
): Promise<Reply> {
  await redis.incr(`asked:${key}`);
  await redis.set(`charge:${key}`, `charge ${process.pid} of ${amount}`, "NX");
  if (role === "victim") process.kill(process.pid, "SIGKILL"); // charged, and not remembered
  await until("the bank to answer", async () => (await redis.exists(`open:${key}`)) === 1);
  if (amount === "0 EUR") throw new Error("the bank is away");
  return { status: 201, body: `${await redis.get(`charge:${key}`)}, told by ${process.pid}` };
}

// #region pay
/** POST with an `Idempotency-Key`: the first request with a key pays, and later ones get its reply. */
async function pay(account: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const key = String(request.headers["idempotency-key"] ?? "");
    if (key === "" || key.length > 100) return void response.writeHead(400).end();
    const body = await text(request);
    const fingerprint = createHash("sha256").update(`${request.url} ${body}`).digest("hex");
    const options = { keep: 86_400_000, wait: 0, fingerprint };
    const { value, ran } = await locks.remember(`pay:${account}:${key}`, options, (run) =>
      charge(body, { idempotencyKey: run.name, signal: run.signal }),
    );
    if (!ran) response.setHeader("idempotent-replayed", "true");
    response.writeHead(value.status).end(value.body);
  } catch (error) {
    const status = statusOf(error);
    if (status >= 500) console.error(error);
    response.writeHead(status).end();
  }
}

function statusOf(error: unknown): number {
  if (error instanceof LockTimeoutError) return 409; // the first request with this key still runs
  if (error instanceof FingerprintError) return 422; // the key was used for another request
  return error instanceof LockUnavailableError ? 503 : 500; // 503: Redis is away, and nothing was done
}
// #endregion

const failures: string[] = [];
console.error = ({ message }: Error): void => void failures.push(message);
const server = createServer((request, response) => void pay("alice", request, response));
await once(server.listen(0, "127.0.0.1"), "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/payments`;

/** "201 charge 1 of 42 EUR", "201 charge 1 of 42 EUR (again)", "409" */
async function post(to: string, key: string, amount: string): Promise<string> {
  const headers = { "idempotency-key": key };
  const response = await fetch(to, { method: "POST", headers, body: amount });
  const again = response.headers.has("idempotent-replayed") ? " (again)" : "";
  return `${response.status} ${await response.text()}`.trimEnd() + again;
}

if (role !== undefined) {
  process.send?.(url);
  await once(process, "disconnect");
  server.close();
  await locks.close();
  await redis.quit();
} else {
  const keys = ["a", "b", "c", "d"].map((name) => `${name}-${process.pid}`);
  const [one = "", other = "", third = "", fourth = ""] = keys;
  const asked = async (of: string): Promise<number> => Number(await redis.get(`asked:pay:alice:${of}`));
  const open = (of: string): Promise<unknown> => redis.set(`open:pay:alice:${of}`, 1);
  /** Another process, and where it is. */
  const start = async (as: string) => {
    const child = startProcess(import.meta.url, as);
    return { child, at: await word(child) };
  };

  const { child, at } = await start("process");
  const first = post(at, one, "42 EUR");
  await until("the first request runs", async () => (await asked(one)) === 1);
  prove((await post(url, one, "42 EUR")) === "409", "a request meanwhile gets 409");
  await open(one);
  const reply = await first;
  prove(reply.startsWith("201 charge"), `the first request pays: ${reply}`);
  for (const to of [url, at])
    prove((await post(to, one, "42 EUR")) === `${reply} (again)`, "a later one gets the same reply");
  prove((await post(url, one, "43 EUR")) === "422", "a key belongs to one request");
  prove((await asked(one)) === 1, "the bank was asked once");
  for (const none of ["", "k".repeat(101)])
    prove((await post(url, none, "42 EUR")) === "400", "a request without a usable key is refused");

  await open(fourth);
  prove((await post(url, fourth, "0 EUR")) === "500", "the bank is away");
  prove(failures.join() === "the bank is away", "that is logged");
  prove((await post(at, fourth, "44 EUR")).startsWith("201"), "an error is not remembered");

  const victim = await start("victim");
  const lost = post(victim.at, other, "7 EUR").catch(() => "no answer");
  prove((await lost) === "no answer", "a process dies after the charge");
  const began = performance.now();
  await open(other);
  let again = await post(url, other, "7 EUR");
  await until("the next request runs", async () => {
    if (again === "409") again = await post(url, other, "7 EUR");
    return again !== "409";
  });
  figure("reply after the crash of the first request", ms(performance.now() - began));
  prove((await asked(other)) === 2, "after a crash the bank is asked again");
  prove(
    again.startsWith(`201 charge ${victim.child.pid} of 7 EUR`) && !again.endsWith("(again)"),
    `and has the first charge only: ${again}`,
  );
  prove((await post(url, other, "7 EUR")) === `${again} (again)`, "that is the reply from now on");

  const sleeper = await start("sleeper");
  const late = post(sleeper.at, third, "9 EUR");
  await until("another first request runs", async () => (await asked(third)) === 1);
  sleeper.child.kill("SIGSTOP");
  await open(third);
  let taken = await post(url, third, "9 EUR");
  await until("the next request runs", async () => {
    if (taken === "409") taken = await post(url, third, "9 EUR");
    return taken !== "409";
  });
  sleeper.child.kill("SIGCONT");
  prove((await late) === "500", "a request whose process stood still is refused: its run was lost");
  prove((await post(sleeper.at, third, "9 EUR")) === `${taken} (again)`, "and changes no reply");

  for (const one of [child, sleeper.child]) {
    one.disconnect();
    if (one.exitCode === null) await once(one, "exit");
  }
  server.close();
  for (const key of keys) {
    await locks.forget(`pay:alice:${key}`);
    await redis.del(["asked", "charge", "open"].map((what) => `${what}:pay:alice:${key}`));
  }
  await locks.close();
  await redis.quit();
}
