import "reflect-metadata";
import { Global, Inject, Injectable, Module, type OnApplicationShutdown } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { createLockClient, type LockClient, type LockOptions } from "holdfast";
import { Redis } from "ioredis";
import { prove, sleep } from "./support.ts";

// #region module
export const REDIS = Symbol("redis");
export const LOCKS = Symbol("locks");

@Global()
@Module({
  providers: [
    { provide: REDIS, useFactory: () => new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379") },
    { provide: LOCKS, useFactory: (redis: Redis) => createLockClient(redis), inject: [REDIS] },
  ],
  exports: [LOCKS],
})
export class LocksModule implements OnApplicationShutdown {
  constructor(
    @Inject(REDIS) private readonly redis: Redis,
    @Inject(LOCKS) private readonly locks: LockClient,
  ) {}

  /** The locks before their connection. Needs app.enableShutdownHooks(). */
  async onApplicationShutdown(): Promise<void> {
    await this.locks.close();
    await this.redis.quit();
  }
}
// #endregion

// #region decorator
/** The method runs under a lock, whose name is made of its arguments. Its class has the lock client as `locks`. */
export function Locked<A extends unknown[]>(name: (...args: A) => string, options: LockOptions = {}) {
  return <R>(
    _: { readonly locks: LockClient },
    __: string,
    descriptor: TypedPropertyDescriptor<(...args: A) => Promise<R>>,
  ): void => {
    const method = descriptor.value;
    if (!method) return;
    descriptor.value = function (this: { readonly locks: LockClient }, ...args: A): Promise<R> {
      return this.locks.lock(name(...args)).withLock(() => method.apply(this, args), options);
    };
  };
}
// #endregion

// #region service
@Injectable()
export class Orders {
  constructor(@Inject(LOCKS) readonly locks: LockClient) {}

  @Locked((id: string) => `order:${id}`, { wait: 1_000 })
  async ship(id: string): Promise<string> {
    return send(id);
  }
}
// #endregion

let inside = 0;
let most = 0;

async function send(id: string): Promise<string> {
  most = Math.max(most, ++inside);
  await sleep(20);
  inside--;
  return `sent ${id}`;
}

@Module({ imports: [LocksModule], providers: [Orders] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ["error"] });
app.enableShutdownHooks();
const orders = app.get(Orders);
const sent = await Promise.all(Array.from({ length: 5 }, () => orders.ship("42")));
prove(most === 1, "calls with the same argument run one at a time");
prove(
  sent.every((text) => text === "sent 42"),
  "each caller gets what the method returned",
);
await Promise.all([orders.ship("43"), orders.ship("44")]);
prove(most === 2, "calls with other arguments run side by side");
await app.close();
