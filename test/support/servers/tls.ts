import { readFile } from "node:fs/promises";
import { launchServer } from "../../../tools/redis/index.ts";
import { makeCertificates } from "../certificates.ts";
import { Standalone } from "./standalone.ts";

/**
 * One server that speaks TLS only, with a certificate of a private authority: a connection without
 * `tls: { ca }` is refused. `connect()` sets it, and duplicates of that connection inherit it.
 *
 * @example
 * const secure = await launchTls();
 * await secure.connect().ping();
 * await secure.stop();
 */
export async function launchTls(): Promise<Standalone> {
  let ca = "";
  const server = await launchServer({
    async prepare(dir) {
      const tls = await makeCertificates(dir);
      ca = await readFile(tls.ca, "utf8");
      return { tls };
    },
  });
  const { host, port } = server;
  return new Standalone({ name: "TLS", address: { redis: { host, port, tls: { ca } } }, server });
}
