// The same handler in three servers. `x-account` represents what authentication says.
import "reflect-metadata";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import {
  type ArgumentsHost,
  Body,
  Catch,
  Controller,
  type ExceptionFilter,
  Headers,
  Inject,
  Module,
  Post,
  Res,
} from "@nestjs/common";
import { APP_FILTER, HttpAdapterHost, NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import fastify from "fastify";
import { LockError } from "holdfast";
import { failure, type Order, Payments } from "./payments.ts";

export interface Running {
  /** Where to POST. */
  readonly url: string;
  close(): Promise<unknown>;
}

export async function withNodeHttp(payments: Payments): Promise<Running> {
  const server = createServer(async (request, response) => {
    const { "x-account": account, "idempotency-key": key } = request.headers;
    const reply = await json(request)
      .then((order) => payments.pay(String(account), key, order as Order))
      .catch(failure);
    if ("isReplay" in reply && reply.isReplay) response.setHeader("idempotent-replayed", "true");
    response.writeHead(reply.status, { "content-type": "application/json" }).end(JSON.stringify(reply.body));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/payments`, close: async () => server.close() };
}

export async function withFastify(payments: Payments): Promise<Running> {
  const app = fastify();
  app.post<{ Body: Order }>("/payments", async (request, reply) => {
    const { "x-account": account, "idempotency-key": key } = request.headers;
    const { status, body, isReplay } = await payments.pay(String(account), key, request.body);
    if (isReplay) reply.header("idempotent-replayed", "true");
    return reply.status(status).send(body);
  });
  app.setErrorHandler((error, _, reply) => {
    const { status, body } = failure(error);
    return reply.status(status).send(body);
  });
  return { url: `${await app.listen({ host: "127.0.0.1", port: 0 })}/payments`, close: () => app.close() };
}

@Controller("payments")
class PaymentsController {
  constructor(@Inject(Payments) private readonly payments: Payments) {}

  @Post()
  async pay(
    @Headers("x-account") account: string,
    @Headers("idempotency-key") key: string | undefined,
    @Body() order: Order,
    @Res({ passthrough: true }) response: {
      status(code: number): void;
      header(name: string, value: string): void;
    },
  ): Promise<object> {
    const { status, body, isReplay } = await this.payments.pay(account, key, order);
    response.status(status);
    if (isReplay) response.header("idempotent-replayed", "true");
    return body;
  }
}

@Catch(LockError)
class Failures implements ExceptionFilter {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  catch(error: LockError, context: ArgumentsHost): void {
    const { status, body } = failure(error);
    this.host.httpAdapter.reply(context.switchToHttp().getResponse(), body, status);
  }
}

export async function withNest(payments: Payments): Promise<Running> {
  @Module({
    controllers: [PaymentsController],
    providers: [
      { provide: Payments, useValue: payments },
      { provide: APP_FILTER, useClass: Failures },
    ],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, new ExpressAdapter(), { logger: ["fatal"] });
  await app.listen(0, "127.0.0.1");
  return { url: `${await app.getUrl()}/payments`, close: () => app.close() };
}
