// A Nest service that ships each order once: on Express and on Fastify, over ioredis and over
// node-redis. It shows the locks at /locks.
//
// Needs a Redis: REDIS_URL, or redis://127.0.0.1:6379.
import "reflect-metadata";
import assert from "node:assert/strict";
import { type BeforeApplicationShutdown, type INestApplication, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { createLockClient, type LockClient } from "holdfast";
import { createLockUI } from "holdfast/ui";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { LocksModule } from "./locks.module.ts";
import { OrdersModule } from "./orders.ts";

const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";

const platforms = { Express: () => new ExpressAdapter(), Fastify: () => new FastifyAdapter() };

/** A lock client on a connection of each library, and how to close that connection. */
const libraries = {
  async ioredis() {
    const redis = new Redis(url);
    return { locks: createLockClient(redis), quit: () => redis.quit() };
  },
  async "node-redis"() {
    const redis = createClient({ url });
    redis.on("error", (error) => console.error(error.message)); // else node-redis throws it
    await redis.connect();
    return { locks: createLockClient(redis), quit: () => redis.close() };
  },
};

async function start(locks: LockClient, platform: keyof typeof platforms): Promise<INestApplication> {
  const ui = createLockUI({ locks });

  @Module({ imports: [LocksModule.of(locks), OrdersModule] })
  class AppModule implements BeforeApplicationShutdown {
    /** An open page is a request that does not end, and the server waits for its requests. */
    beforeApplicationShutdown(): void {
      ui.close();
    }
  }

  const app = await NestFactory.create<INestApplication>(AppModule, platforms[platform](), {
    logger: ["error"],
  });
  app.enableShutdownHooks();
  app.use("/locks", ui.node); // for browsers of this machine, as it has no `authorize`
  await app.listen(0, "127.0.0.1");
  return app;
}

async function visit(
  app: INestApplication,
  locks: LockClient,
  platform: string,
  library: string,
): Promise<void> {
  const base = await app.getUrl();
  const ship = async (id: string) => {
    const response = await fetch(`${base}/orders/${id}/ship`, { method: "POST" });
    return { status: response.status, ...((await response.json()) as { is?: string }) };
  };
  const order = `${platform}-${library}-${process.pid}`;
  const replies = await Promise.all(Array.from({ length: 5 }, () => ship(order)));
  assert.equal(replies.filter(({ is }) => is === "shipped").length, 1, "one request ships it");
  assert.equal(replies.filter(({ is }) => is === "shipped before").length, 4);

  const busy = await locks.lock("order:busy").lock();
  assert.equal((await ship("busy")).status, 409, "a request does not wait for long");
  await busy.unlock();

  const page = await fetch(`${base}/locks/`);
  assert.match(await page.text(), /<span>Holdfast<\/span>/);
  const viewer = await fetch(`${base}/locks/?part=events`); // stays open until the application ends
  assert.equal(viewer.status, 200);
  console.log(`Nest on ${platform}, over ${library}: 5 requests, 1 shipment; a busy order: 409`);
}

for (const platform of ["Express", "Fastify"] as const)
  for (const library of ["ioredis", "node-redis"] as const) {
    const { locks, quit } = await libraries[library]();
    const app = await start(locks, platform);
    await visit(app, locks, platform, library);
    await app.close(); // closes the lock client
    await quit(); // and then its connection
  }
