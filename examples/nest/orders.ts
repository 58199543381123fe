import { setTimeout } from "node:timers/promises";
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  HttpStatus,
  Inject,
  Injectable,
  Module,
  Param,
  Post,
} from "@nestjs/common";
import { APP_FILTER, HttpAdapterHost } from "@nestjs/core";
import { type LockClient, LockTimeoutError, LockUnavailableError } from "holdfast";
import { LOCKS } from "./locks.module.ts";

@Injectable()
class Orders {
  readonly #shipped = new Set<string>();

  constructor(@Inject(LOCKS) private readonly locks: LockClient) {}

  /** Ships an order once, however many requests come, to however many processes. */
  ship(id: string): Promise<string> {
    return this.locks.lock(`order:${id}`).withLock({ wait: 1_000 }, async (lease) => {
      if (this.#shipped.has(id)) return "shipped before"; // in a service: a row of the database
      await setTimeout(20, undefined, { signal: lease.signal });
      lease.assertHeld();
      this.#shipped.add(id);
      return "shipped";
    });
  }
}

@Controller("orders")
class OrdersController {
  constructor(@Inject(Orders) private readonly orders: Orders) {}

  @Post(":id/ship")
  async ship(@Param("id") id: string): Promise<{ order: string; is: string }> {
    return { order: id, is: await this.orders.ship(id) };
  }
}

/** Another request has the lock for longer than `wait`: 409. Redis is away: 503. On every platform. */
@Catch(LockTimeoutError, LockUnavailableError)
class LockErrors implements ExceptionFilter {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  catch(error: LockTimeoutError | LockUnavailableError, context: ArgumentsHost): void {
    const isBusy = error instanceof LockTimeoutError;
    const status = isBusy ? HttpStatus.CONFLICT : HttpStatus.SERVICE_UNAVAILABLE;
    const body = { message: isBusy ? "the order is being shipped" : "try again later" };
    this.host.httpAdapter.reply(context.switchToHttp().getResponse(), body, status);
  }
}

@Module({
  controllers: [OrdersController],
  providers: [Orders, { provide: APP_FILTER, useClass: LockErrors }],
})
export class OrdersModule {}
