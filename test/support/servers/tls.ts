import { readFile } from "node:fs/promises";
import { launchServer } from "../../../tools/redis/index.ts";
import { makeCertificates } from "../certificates.ts";
import { Standalone } from "./standalone.ts";

/**
 * One server that speaks TLS only, with a certificate of an authority that nobody else knows: a
 * connection without `tls: { ca }` is refused. `connect()` has it, and so has whatever is
 * duplicated from it.
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
