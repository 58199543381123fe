import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Redis } from "ioredis";
import { createLockClient } from "../src/index.ts";
import { createOwnUI } from "../src/tools/ui/own-ui.ts";
import { findRedis } from "../tools/redis/index.ts";
import { buildWorker } from "./build-worker.ts";
import { connect } from "./connect.ts";
import { Crew } from "./crew.ts";
import { WORKERS } from "./run.ts";
import { PRODUCTS, STOCK_OF_EACH, shelf } from "./shelves.ts";
import { lookAround, openShop, readSales } from "./shop.ts";
import { paint, print } from "./terminal.ts";

/**
 * Keeps the shop open until the signal aborts, and serves the page of its locks to browsers of this
 * machine. Resolves with false when a piece was sold twice, or none.
 *
 * @throws Error when a worker fails or dies
 */
export async function keepOpen(closing: AbortSignal): Promise<boolean> {
  const seller = await buildWorker(new URL("./seller.ts", import.meta.url));
  try {
    const server = await findRedis({ say: print });
    try {
      return await sell(server.url, seller.path, closing);
    } finally {
      await server.stop();
    }
  } finally {
    await seller.remove();
  }
}

async function sell(url: string, program: string, closing: AbortSignal): Promise<boolean> {
  // The page shows what is behind the prefix, so nothing of whatever else uses this Redis.
  const prefix = `holdfast-demo:${randomUUID().slice(0, 8)}:`;
  const redis = await connect(url, prefix);
  const locks = createLockClient(redis);
  const word = randomBytes(16).toString("base64url");
  const page = createOwnUI(
    { locks, redis, actions: ["recall", "break"] },
    { word, label: "a viewer of the shop" },
  );
  const server = createServer((request, response) => void page.node(request, response));
  const shifts = Array.from({ length: WORKERS }, (_, worker) => {
    return { strategy: "hand-off" as const, url, prefix, worker };
  });
  // Its steps are not ended by the signal: a seller in the middle of a sale shall finish it.
  const crew = new Crew(program, shifts, new AbortController().signal);
  try {
    for (const product of PRODUCTS) await openShop(redis, shelf(product), STOCK_OF_EACH);
    await crew.ready();
    print(`${WORKERS} processes sell ${PRODUCTS.length} products, each of them behind a lock of its own.`);
    print(`  ${paint("bold", `${await listen(server)}?word=${word}`)}  shows the locks, until Ctrl-C.`);
    await crew.sellUntil(closing);
    const reports = await crew.close();
    const refused = reports.reduce((sum, report) => sum + report.refused, 0);
    return await judge(redis, refused);
  } finally {
    crew.dismiss();
    page.close();
    server.close();
    server.closeAllConnections();
    await locks.close({ grace: 0 });
    await clear(redis, prefix).catch(() => {});
    redis.disconnect();
  }
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/**
 * Was every piece sold once, and each by a holder that came after the one before? Says so.
 * `refused`: sales of broken locks.
 */
async function judge(redis: Redis, refused: number): Promise<boolean> {
  let total = 0;
  let isFine = true;
  for (const product of PRODUCTS) {
    const { sold, stock } = await lookAround(redis, shelf(product));
    const tokens = (await readSales(redis, shelf(product))).map(({ token }) => token ?? 0);
    total += sold;
    isFine &&= sold + stock === STOCK_OF_EACH && tokens.every((token, i) => token > (tokens[i - 1] ?? 0));
  }
  print();
  if (isFine) print(`  ${paint("green", `${total} pieces were sold`)}, and none of them twice.`);
  else
    print(
      `  ${paint("red", `${total} pieces were sold`)}, and the shelves say otherwise. This should not happen.`,
    );
  if (refused > 0)
    print(`  ${refused} more were refused by their tokens, because the lock had been broken meanwhile.`);
  return isFine;
}

/** Removes all that is behind the prefix, which is this shop's alone. */
async function clear(redis: Redis, prefix: string): Promise<void> {
  for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 }))
    if (keys.length > 0) await redis.unlink((keys as string[]).map((key) => key.slice(prefix.length)));
}
