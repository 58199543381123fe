import { once } from "node:events";
import { connect, createServer } from "node:net";
import { connect as connectTls } from "node:tls";

/** The bus of a cluster node listens 10 000 above its port, and ports end at 65 535. */
const HIGHEST_PORT = 55_535;

/**
 * A loopback port that was free a moment ago. Another process may take it before its user does: be
 * ready to ask again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    await new Promise((closed) => server.close(closed));
    if (address !== null && typeof address === "object" && address.port <= HIGHEST_PORT) return address.port;
  }
}

/**
 * Does the Redis of this process id answer on this loopback port? PING shows that a server answers;
 * INFO shows which one: another process may have taken the port first. A server with a password
 * answers only NOAUTH; and QUIT avoids waiting for more after the answer of a foreign server. Never
 * rejects; gives up after a second.
 *
 * @param ca the authority that vouches for the server, if it speaks TLS
 */
export function answers(port: number, pid: number, ca?: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    let reply = "";
    const ask = () => socket.write("PING\r\nINFO server\r\nQUIT\r\n");
    const to = { port, host: "127.0.0.1" };
    const socket = ca === undefined ? connect(to, ask) : connectTls({ ...to, ca }, ask);
    socket.setEncoding("utf8").setTimeout(1_000, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve(false));
    socket.on("data", (chunk) => {
      reply += chunk;
      const ready = reply.includes("+PONG") && reply.includes(`\nprocess_id:${pid}\r`);
      if (!ready && !reply.startsWith("-NOAUTH")) return;
      resolve(true);
      socket.destroy();
    });
  });
}
