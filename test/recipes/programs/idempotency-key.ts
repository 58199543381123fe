import { createHash } from "node:crypto";
import { once } from "node:events";
import { createLockClient, type LockError } from "holdfast";
import { connect, figure, ms, prove, startProcess, until, word } from "./support.ts";

interface Reply {
  readonly status: number;
  readonly body: string;
}

const redis = connect();
const [, , role, ...words] = process.argv;
/** Short where the process is to die or stop: the others wait for that long. */
const leaseTime = role === "victim" || role === "sleeper" ? 2_000 : 30_000;
const locks = createLockClient(redis, { leaseTime });

/** The bank, in Redis here. It makes one charge for each key, and answers once the test lets it. */
async function charge(amount: string, { key }: { key: string; signal: AbortSignal }): Promise<Reply> {
  await redis.incr(`asked:${key}`);
  await redis.set(`charge:${key}`, `charge ${process.pid} of ${amount}`, "NX");
  process.send?.("charged");
  if (role === "victim") process.kill(process.pid, "SIGKILL"); // charged, and not remembered
  await until("the bank to answer", async () => (await redis.exists(`open:${key}`)) === 1);
  return { status: 201, body: `${await redis.get(`charge:${key}`)}, told by ${process.pid}` };
}

// #region pay
/** The first request with a key runs, and the others get its reply. Null: it still runs after `wait`. */
async function pay(key: string, amount: string, wait = 0): Promise<Reply | null> {
  const record = `idempotency:${key}`;
  const print = createHash("sha256").update(amount).digest("hex"); // of the whole request
  const remembered = async (): Promise<Reply | null> => {
    const found = JSON.parse((await redis.get(record)) ?? "null");
    if (found && found.print !== print) return { status: 422, body: "another request had this key" };
    return found?.reply ?? null;
  };

  const early = await remembered();
  if (early) return early;
  await using lease = await locks.lock(record).tryLock({ wait });
  if (!lease) return null; // answer 409
  const late = await remembered(); // another request ran while this one waited
  if (late) return late;
  const reply = await charge(amount, { key, signal: lease.signal });
  // NX: if the lock was lost and another request ran, the first reply stays the only one
  await redis.set(record, JSON.stringify({ print, reply }), "PX", 86_400_000, "NX");
  return await remembered();
}
// #endregion

const [key = "", amount = ""] = words;
if (role !== undefined) {
  const reply = await pay(key, amount).catch(({ code }: LockError) => ({ body: code })); // LOCK_LOST
  process.send?.(reply?.body ?? "busy");
  await locks.close();
  await redis.quit();
  process.disconnect?.();
} else {
  const keys = ["a", "b", "c"].map((name) => `${name}-${process.pid}`);
  const [one = "", other = "", third = ""] = keys;
  const asked = async (of: string): Promise<number> => Number(await redis.get(`asked:${of}`));

  const first = startProcess(import.meta.url, "process", one, "42 EUR");
  prove((await word(first)) === "charged", "the first request runs");
  prove((await pay(one, "42 EUR")) === null, "a request meanwhile gets 409");
  const waiting = pay(one, "42 EUR", 20_000);
  await until("it waits", async () => (await locks.lock(`idempotency:${one}`).inspect()).here.waiting === 1);
  await redis.set(`open:${one}`, 1);
  const body = await word(first);
  prove((await waiting)?.body === body, "a request that waits gets the reply of the first one");
  prove((await pay(one, "42 EUR"))?.body === body, "and so does a later one");
  prove((await pay(one, "43 EUR"))?.status === 422, "a key belongs to one request");
  prove((await asked(one)) === 1, "the bank was asked once");

  const victim = startProcess(import.meta.url, "victim", other, "7 EUR");
  await until("the victim has charged", async () => (await asked(other)) === 1);
  if (victim.signalCode === null) await once(victim, "exit");
  const began = performance.now();
  await redis.set(`open:${other}`, 1);
  const again = await pay(other, "7 EUR", 20_000);
  figure("reply after the crash of the first request", ms(performance.now() - began));
  prove((await asked(other)) === 2, "after a crash the bank is asked again");
  prove(
    !!again?.body.startsWith(`charge ${victim.pid} of 7 EUR`),
    `and has the first charge only: ${again?.body}`,
  );
  prove((await pay(other, "7 EUR"))?.body === again?.body, "that is the reply from now on");

  const sleeper = startProcess(import.meta.url, "sleeper", third, "9 EUR");
  prove((await word(sleeper)) === "charged", "another first request runs");
  sleeper.kill("SIGSTOP");
  await redis.set(`open:${third}`, 1);
  const taken = await pay(third, "9 EUR", 20_000);
  sleeper.kill("SIGCONT");
  await once(sleeper, "exit"); // its lock is lost
  prove(
    (await pay(third, "9 EUR"))?.body === taken?.body,
    "a first request that stood still changes no reply",
  );

  await redis.del(
    keys.flatMap((name) => ["asked", "charge", "open", "idempotency"].map((what) => `${what}:${name}`)),
  );
  await locks.close();
  await redis.quit();
}
