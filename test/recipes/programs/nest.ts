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
/**
 * The method runs under a lock, whose name is made of its arguments. Its class has the lock client
 * as `locks`. Calls reject if another decorator wraps the method from outside.
 */
export function Locked<A extends unknown[]>(name: (...args: A) => string, options: LockOptions = {}) {
  return <R>(
    prototype: { readonly locks: LockClient },
    key: string,
    descriptor: TypedPropertyDescriptor<(...args: A) => Promise<R>>,
  ): void => {
    const method = descriptor.value;
    if (!method) return;
    const locked = async function (this: { readonly locks: LockClient }, ...args: A): Promise<R> {
      if (Reflect.get(prototype, key) !== locked)
        throw new Error(`@Locked must stand above what else wraps ${key}(): it releases the lock first`);
      return this.locks.lock(name(...args)).withLock(options, () => method.apply(this, args));
    };
    descriptor.value = locked;
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

/**
 * Stands for a database: a transaction reads what others have committed, and its own write is there
 * after COMMIT alone.
 */
class Accounts {
  amount = 0;

  async transaction(body: (write: (amount: number) => void) => Promise<void>): Promise<void> {
    let written: number | null = null;
    await body((amount) => {
      written = amount;
    });
    await sleep(10); // COMMIT
    this.amount = written ?? this.amount;
  }
}

const accounts = new Accounts();

/**
 * As those of database libraries: the method runs in a transaction, which is committed when it has
 * returned.
 */
function Transactional() {
  return (_: unknown, __: string, descriptor: TypedPropertyDescriptor<() => Promise<void>>): void => {
    const method = descriptor.value;
    if (!method) return;
    descriptor.value = function (this: Billing): Promise<void> {
      return accounts.transaction((write) => {
        this.write = write;
        return method.call(this);
      });
    };
  };
}

@Injectable()
class Billing {
  write: (amount: number) => void = () => {};

  constructor(@Inject(LOCKS) readonly locks: LockClient) {}

  @Locked(() => "account")
  @Transactional()
  async add(): Promise<void> {
    const { amount } = accounts;
    const { write } = this;
    await sleep(5);
    write(amount + 1);
  }

  @Transactional()
  @Locked(() => "account")
  async addTooEarly(): Promise<void> {}
}

@Module({ imports: [LocksModule], providers: [Orders, Billing] })
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

const billing = app.get(Billing);
await Promise.all(Array.from({ length: 5 }, () => billing.add()));
prove(accounts.amount === 5, "a lock that is released after COMMIT loses no update");
const refusal = await billing.addTooEarly().catch((error: Error) => error.message);
prove(/@Locked must stand above/.test(String(refusal)), "a transaction around the lock is refused");
// What is refused there:
const early = (): Promise<void> =>
  accounts.transaction((write) =>
    billing.locks.lock("account").withLock(async () => {
      write(accounts.amount + 1);
    }),
  );
await Promise.all(Array.from({ length: 5 }, early));
prove(accounts.amount < 10, "a lock that is released before COMMIT loses updates");
await app.close();
