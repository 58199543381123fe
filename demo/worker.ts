/**
 * A worker process of the shop: it serves its share of the orders. See crew.ts for the other end.
 */
import { once } from "node:events";
import { isLockLost } from "../src/index.ts";
import { countCommands, countNodeRedisCommands } from "../tools/redis/count-commands.ts";
import { type Connection, connect, connectNodeRedis, overIoredis, overNodeRedis } from "./connect.ts";
import type { Job, Word } from "./crew.ts";
import { type Guard, guardOf, libraryGuard } from "./guards.ts";
import { report, workAs } from "./member.ts";
import { chargeCustomer, sellOne } from "./shop.ts";
import { isLibraryLock } from "./strategies.ts";
import type { Gap } from "./wrong-locks.ts";

async function work(job: Job): Promise<void> {
  const isNodeRedis = job.driver === "node-redis";
  const commands = isNodeRedis ? countNodeRedisCommands() : countCommands();
  const connections: Connection[] = [];
  let isAwake = job.naps === null;

  /** Where this process may be stopped. True: it was, until its lease had ended. */
  async function nap(): Promise<boolean> {
    if (isAwake) return false;
    report({ is: "at the place" });
    const [word] = (await once(process, "message")) as [Word];
    isAwake = word === "go on, and stop no more";
    return !isAwake;
  }
  const gap: Gap = { pass: async () => job.naps === "gap" && nap(), deleted: 0 };

  async function open(url: string): Promise<Connection> {
    const connection = isNodeRedis
      ? overNodeRedis(await connectNodeRedis(url))
      : overIoredis(await connect(url));
    connections.push(connection);
    return connection;
  }

  async function guarded(): Promise<Guard> {
    if (isLibraryLock(job.strategy)) {
      const [connection, ...quorum] = await Promise.all([job.url, ...job.quorum].map(open));
      return libraryGuard(job.strategy, connection as Connection, quorum, job);
    }
    const redis = await connect(job.url);
    connections.push(overIoredis(redis));
    return guardOf(job.strategy, redis, gap, job);
  }

  const guard = await guarded();
  const waits: number[] = [];
  let charges = 0;
  let refused = 0;

  async function charge(order: number): Promise<void> {
    charges++;
    await chargeCustomer(order);
    // Between reading and writing.
    if (job.naps === "sale") await nap();
  }

  async function serve(order: number): Promise<void> {
    const asked = performance.now();
    let waited = 0;
    let sold: boolean | null = null;
    while (sold === null) {
      const sell = guard.serve(async (till) => {
        waited = performance.now() - asked;
        sold = await sellOne(till, order, job.worker, () => charge(order));
        return sold;
      });
      await sell.catch((error: unknown) => {
        if (!isLockLost(error)) throw error;
        // The lock was lost on the way. If the shop took the sale all the same, it is sold; else
        // the order comes again.
        if (sold === null) refused++;
      });
    }
    waits.push(waited);
  }

  report({ is: "ready" });
  await once(process, "message");
  const before = commands();
  const orders = [...job.orders];
  const till = async (): Promise<void> => {
    for (let order = orders.shift(); order !== undefined; order = orders.shift()) await serve(order);
  };
  // The worker that is stopped holds one lock, and has no further places in the queue.
  while (!isAwake && orders.length > 0) await serve(orders.shift() as number);
  await Promise.all(Array.from({ length: job.tills }, till));
  report({ is: "done", waits, sent: commands() - before, charges, refused, deleted: gap.deleted });

  // What is sent for leaving must not be measured: wait for the word.
  await once(process, "message");
  await guard.close();
  await Promise.all(connections.map((connection) => connection.quit()));
}

workAs<Job>(work);
