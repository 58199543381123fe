#!/usr/bin/env node
import { main } from "./main.ts";

// `holdfast ls | head`: the reader has enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 74);
});
process.stderr.on("error", () => {});

main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
