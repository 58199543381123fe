import { createRequire } from "node:module";
import { resolve } from "node:path";
import vm from "node:vm";
import { build } from "esbuild";

/** What a simulated process has of this package. */
export interface Product {
  readonly ServerClient: typeof import("../../src/client/server-client.ts").ServerClient;
  readonly redisServer: typeof import("../../src/client/server.ts").redisServer;
  readonly checkClientOptions: typeof import("../../src/api/options.ts").checkClientOptions;
  /** Of the scripts of this product, whatever they do. */
  readonly MemoryRedis: typeof import("../../src/tools/testing/memory-redis.ts").MemoryRedis;
  /** An error that this MemoryRedis replies. */
  readonly RedisError: typeof import("../../src/tools/testing/keyspace.ts").RedisError;
  readonly MemoryLink: typeof import("../../src/tools/testing/memory-link.ts").MemoryLink;
  readonly spinLock: typeof import("../../src/spin.ts").spinLock;
  readonly redissonLock: typeof import("../../src/redisson.ts").redissonLock;
  readonly redissonFencedLock: typeof import("../../src/redisson.ts").redissonFencedLock;
}

/** What it takes from its process. */
export interface Surroundings {
  /** Modules of Node.js, without "node:". */
  readonly modules: Readonly<Record<string, object>>;
  readonly globals: Readonly<Record<string, unknown>>;
}

/** Makes an instance of the package's modules, with state of its own. */
export type Load = (surroundings: Surroundings) => Product;

const ENTRY = `
export { ServerClient } from "./src/client/server-client.ts";
export { redisServer } from "./src/client/server.ts";
export { checkClientOptions } from "./src/api/options.ts";
export { RedisError } from "./src/tools/testing/keyspace.ts";
export { MemoryRedis } from "./src/tools/testing/memory-redis.ts";
export { MemoryLink } from "./src/tools/testing/memory-link.ts";
export { spinLock } from "./src/spin.ts";
export { redissonLock, redissonFencedLock } from "./src/redisson.ts";
`;

/** These are the process's own: nothing reads the real clock, a real timer or real randomness. */
const GLOBALS = [
  "process",
  "Date",
  "Math",
  "performance",
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "FinalizationRegistry",
];

/** Bundles src once. `root`: the folder that contains it. */
export async function loadProduct(root: string): Promise<Load> {
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: root, loader: "ts" },
    bundle: true,
    write: false,
    format: "cjs",
    platform: "node",
    target: "node20",
    sourcemap: "inline",
    external: ["ioredis", "redis", "prom-client", "@opentelemetry/*"],
    logLevel: "error",
  });
  const code = `(function (require, module, exports, ${GLOBALS.join(", ")}) {${outputFiles[0]?.text}\n})`;
  const instance = new vm.Script(code, { filename: resolve(root, "holdfast.cjs") }).runInThisContext();
  const realRequire = createRequire(resolve(root, "package.json"));
  return ({ modules, globals }) => {
    const require = (name: string): unknown => modules[name.replace(/^node:/, "")] ?? realRequire(name);
    const module = { exports: {} };
    const real = globalThis as Record<string, unknown>;
    instance(require, module, module.exports, ...GLOBALS.map((name) => globals[name] ?? real[name]));
    return module.exports as Product;
  };
}
