import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { findCommand } from "../../tools/redis/command.ts";
import { installPackages, whyNotInstall } from "../../tools/redis/install.ts";
import type { TlsFiles } from "../../tools/redis/process.ts";

const run = promisify(execFile);

/**
 * Creates a private authority and a server certificate signed by it, valid for a day.
 *
 * @example
 * const files = await makeCertificates(folder);
 * const server = await launchServer({ tls: files });
 * const redis = new Redis(server.url, { tls: { ca: await readFile(files.ca) } });
 *
 * @param folder must be private: it gets the keys
 * @throws Error if there is no `openssl`, and none can be installed
 */
export async function makeCertificates(folder: string): Promise<TlsFiles> {
  const openssl = await opensslCommand();
  const ask = (...args: string[]) => run(openssl, args, { cwd: folder });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await ask(
    "req",
    "-x509",
    ...newKey,
    "-keyout",
    "ca.key",
    "-out",
    "ca.crt",
    "-days",
    "1",
    "-subj",
    "/CN=CA",
  );
  await ask("req", ...newKey, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1");
  await writeFile(join(folder, "server.ext"), "subjectAltName=IP:127.0.0.1\n");
  const request = ["-req", "-in", "server.csr", "-extfile", "server.ext", "-out", "server.crt", "-days", "1"];
  await ask("x509", ...request, "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial");
  return {
    ca: join(folder, "ca.crt"),
    cert: join(folder, "server.crt"),
    key: join(folder, "server.key"),
  };
}

async function opensslCommand(): Promise<string> {
  const found = findCommand(["openssl"]);
  if (found !== null) return found;
  const obstacle = whyNotInstall();
  if (obstacle !== null) throw new Error(`No openssl on the PATH, and none can be installed: ${obstacle}`);
  await installPackages(["openssl"], (line) => void process.stderr.write(`${line}\n`));
  return findCommand(["openssl"], "/usr/bin") ?? "openssl";
}
