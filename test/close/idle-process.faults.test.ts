import { fork } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { compiled } from "../support/compiled.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// A process that took a free lock by a call that may wait, and has nothing else to do: the
// connection that the call opened beside its command, where grants would be heard, does not keep it
// alive, whatever becomes of it.

const own = new OwnServer();

const PROGRAM = compiled(`
  import { Redis } from "ioredis";
  import { createLockClient } from "./src/index.ts";
  const redis = new Redis(Number(process.argv[2]), "127.0.0.1");
  redis.on("error", () => {});
  const locks = createLockClient(redis);
  await locks.lock("free").withLock(() => {});
  await redis.blpop("go", 0);
  if (process.argv[3] === "close") await locks.close();
  await redis.quit();
  const over = performance.eventLoopUtilization();
  const idle = () => performance.eventLoopUtilization(over).idle;
  process.on("exit", () => process.stdout.write(String(idle())));
`);

/**
 * What becomes of every connection but the first, and for how many ms the process may wait for
 * something. Less than the client would wait for an answer (5 s), or for a closed connection (2 s).
 */
const ENDS: Readonly<
  Record<string, { further(socket: Socket, happened: () => void): void; within: number }>
> = {
  "nothing answers": { further: (_, happened) => happened(), within: 4_000 },
  "SUBSCRIBE is not answered": {
    further(socket, happened) {
      const upstream = connect(own.server.port, "127.0.0.1");
      upstream.on("error", () => {}).on("data", (data) => socket.write(data));
      socket.on("close", () => upstream.destroy());
      socket.on("data", (data) => {
        if (/\r\nsubscribe\r\n/i.test(data.toString())) happened();
        else upstream.write(data);
      });
    },
    within: 4_000,
  },
  "it is closed at once": {
    further(socket, happened) {
      socket.on("close", happened).destroy();
    },
    within: 1_500,
  },
};

it.each(Object.keys(ENDS).flatMap((what) => ["", "close"].map((ending) => [what, ending] as const)))(
  "%s: the process ends (%s)",
  { timeout: 60_000 },
  async (what, ending) => {
    const { further, within } = ENDS[what] ?? {};
    let [connections, happened] = [0, 0];
    const proxy = createServer((socket) => {
      socket.on("error", () => {});
      if (++connections > 1) return void further?.(socket, () => void happened++);
      const upstream = connect(own.server.port, "127.0.0.1").on("error", () => {});
      socket.pipe(upstream).pipe(socket);
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const { port } = proxy.address() as AddressInfo;
    const child = fork(PROGRAM, [`${port}`, ending], { stdio: ["ignore", "pipe", "inherit", "ipc"] });
    child.disconnect();
    const ended = once(child, "exit");
    onTestFinished(() => {
      child.kill("SIGKILL");
      proxy.close();
    });
    let said = "";
    child.stdout?.on("data", (text) => {
      said += text;
    });
    await until(() => happened > 0, { timeout: 30_000, what: "the second connection" });
    const admin = new Redis(own.url);
    onTestFinished(() => admin.disconnect());
    await admin.lpush("go", "1");
    await Promise.race([ended, until(() => said !== "", { timeout: 20_000, what: "its end" })]);
    expect(Number(said || "NaN")).toBeLessThan(within ?? 0);
  },
);
