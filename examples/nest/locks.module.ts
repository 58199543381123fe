import { type DynamicModule, Inject, Module, type OnApplicationShutdown } from "@nestjs/common";
import type { LockClient } from "holdfast";

/** A service injects the lock client: `@Inject(LOCKS) readonly locks: LockClient`. */
export const LOCKS = Symbol("locks");

/** Offers the application's lock client everywhere, and closes it with the application. */
@Module({})
export class LocksModule implements OnApplicationShutdown {
  constructor(@Inject(LOCKS) private readonly locks: LockClient) {}

  static of(locks: LockClient): DynamicModule {
    const providers = [{ provide: LOCKS, useValue: locks }];
    return { module: LocksModule, global: true, providers, exports: [LOCKS] };
  }

  /** Before the connection is closed. On a signal it needs app.enableShutdownHooks(). */
  async onApplicationShutdown(): Promise<void> {
    await this.locks.close();
  }
}
