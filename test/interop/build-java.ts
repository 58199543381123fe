import { buildJava, whyNoJava } from "../../tools/build/maven.ts";
import { PROJECT } from "./side.ts";

/** Compiles the Java side once, before all tests; without Maven or Java they are skipped. */
export function setup(): void {
  const obstacle = whyNoJava();
  if (obstacle === null) buildJava(PROJECT);
  else process.env.INTEROP_OBSTACLE = obstacle;
}
