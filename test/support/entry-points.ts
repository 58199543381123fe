import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const src = fileURLToPath(new URL("../../src/", import.meta.url));

/**
 * The module of an entry point below src, by the text after `holdfast/`; "": of `holdfast` itself.
 */
export function moduleOf(entry: string): string {
  if (entry === "") return "index.ts";
  const places = [
    `${entry}.ts`,
    `${entry}/index.ts`,
    `tools/${entry}/index.ts`,
    `tools/telemetry/${entry}.ts`,
  ];
  return places.find((place) => existsSync(src + place)) ?? `no module of ${entry}`;
}
