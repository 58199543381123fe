import { readFile } from "node:fs/promises";
import { type AddressInfo, connect } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { Redis as Redis6 } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient as createClient6 } from "redis";
import { createClient as createClient5 } from "redis5";
import { afterAll, describe, it } from "vitest";
import { createLockClient, type NodeRedisLike, type RedisLike } from "../../src/index.ts";
import { makeCertificates } from "../support/certificates.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { inTurn } from "../support/in-turn.ts";
import { OwnServer } from "../support/own-server.ts";
import { survivesCut } from "../support/survives-cut.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

// The application changes the options of its connection, as both libraries' own advice on rotated
// passwords says, and then the server closes every connection: those that Holdfast has opened too.

const own = new OwnServer();
const parties = new Parties();
const undo: (() => unknown)[] = [];
// They run side by side, so all ends when all have ended.
afterAll(async () => {
  for (const one of undo.splice(0).reverse()) await one();
  await parties.close();
});

interface Way {
  username?: string;
  password?: string;
  port: number;
  tls?: { ca: string; servername: string };
}

/** A connection of the application, and how it changes its options. */
interface Connection {
  readonly redis: RedisLike | NodeRedisLike;
  change(way: Way): void;
}

function onIoredis(Redis: typeof Redis6, { tls, ...way }: Way): Connection {
  const options = { retryStrategy: () => 20, ...way, ...(tls && { tls: { ...tls, ...ANY_NAME } }) };
  const redis = new Redis(options as object);
  redis.on("error", () => {});
  undo.push(() => redis.disconnect());
  const change = ({ tls, ...next }: Way): void => {
    Object.assign(redis.options, next, tls && { tls: { ...tls, ...ANY_NAME } });
  };
  return { redis: redis as unknown as RedisLike, change };
}

function onNodeRedis(createClient: typeof createClient6, way: Way): Connection {
  const parts = ({ tls, port, ...who }: Way) => ({
    ...who,
    socket: {
      port,
      host: "127.0.0.1",
      reconnectStrategy: () => 20,
      ...(tls && { tls: true, ...tls, ...ANY_NAME }),
    },
  });
  const client = (createClient as (options: object) => ReturnType<typeof createClient6>)(parts(way));
  client.on("error", () => {});
  void client.connect();
  undo.push(() => client.destroy());
  const change = (next: Way): void => {
    const { socket, ...who } = parts(next);
    Object.assign(client.options ?? {}, who);
    Object.assign(client.options?.socket ?? {}, socket);
  };
  return { redis: client as unknown as NodeRedisLike, change };
}

let made: Promise<string[]> | undefined;
/** RACE: the tests that run side by side have the same files, so only the first one writes them. */
const certificates = (): Promise<string[]> => {
  made ??= makeCertificates(own.server.dir).then((files) =>
    Promise.all([files.ca, files.cert, files.key].map((file) => readFile(file, "utf8"))),
  );
  return made;
};

/** The certificate is of 127.0.0.1. */
const ANY_NAME = { checkServerIdentity: () => undefined };

/** Locks on a connection of the application's; its options change, and every connection is closed. */
async function rotated({ redis, change }: Connection, next: Way, cut: () => Promise<unknown>): Promise<void> {
  const { locks: others } = await parties.join({ url: own.url });
  const locks = createLockClient(redis, { connection: "own", leaseTime: 6_000 });
  undo.push(() => locks.close({ grace: 0 }));
  await survivesCut(locks, others, () => {
    change(next);
    return cut();
  });
}

const LIBRARIES = {
  "ioredis 6": (way: Way) => onIoredis(Redis6, way),
  "ioredis 5": (way: Way) => onIoredis(Redis5 as never, way),
  "node-redis 6": (way: Way) => onNodeRedis(createClient6, way),
  "node-redis 5": (way: Way) => onNodeRedis(createClient5 as never, way),
} as const;

describe.concurrent.each(inTurn(Object.entries(LIBRARIES)))(
  "%s: the client's own connections take",
  (_, open) => {
    it("a rotated password", async () => {
      const user = await own.addUser("~*", "&*", "+@all");
      const { port } = own.server;
      const next = { ...user, port, password: freshName("password") };
      await rotated(open({ ...user, port }), next, async () => {
        await own.admin.acl("SETUSER", user.username, "resetpass", `>${next.password}`);
        await own.admin.client("KILL", "USER", user.username);
      });
    });

    it("another user", async () => {
      const [user, other] = [await own.addUser("~*", "&*", "+@all"), await own.addUser("~*", "&*", "+@all")];
      const { port } = own.server;
      await rotated(open({ ...user, port }), { ...other, port }, () =>
        own.admin.acl("DELUSER", user.username),
      );
    });

    it("another address", async () => {
      const [from, to] = [await TcpProxy.start(own.server), await TcpProxy.start(own.server)];
      undo.push(() => to.stop());
      await rotated(open({ port: from.port }), { port: to.port }, () => from.stop());
    });

    it("another TLS option", async () => {
      const { port: target } = own.server;
      const [ca, cert, key] = await certificates();
      let wanted = "old.test";
      const sockets = new Set<TLSSocket>();
      const server = createServer({ cert, key }, (socket) => {
        socket.on("error", () => {});
        if (socket.servername !== wanted) return socket.destroy();
        sockets.add(socket);
        const inner = connect(target, "127.0.0.1");
        inner.on("error", () => {}).on("close", () => socket.destroy());
        socket.on("close", () => inner.destroy());
        socket.pipe(inner).pipe(socket);
      });
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
      undo.push(() => server.close());
      const { port } = server.address() as AddressInfo;
      const tls = { ca: String(ca), servername: wanted };
      await rotated(open({ port, tls }), { port, tls: { ...tls, servername: "new.test" } }, async () => {
        wanted = "new.test";
        for (const socket of sockets) socket.destroy();
      });
    });
  },
);
