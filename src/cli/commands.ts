import type { Command } from "./command.ts";
import { ELECT } from "./run/elect.ts";
import { RUN_COMMAND } from "./run/run.ts";

/** In the order of the help. */
export const COMMANDS: readonly Command[] = [RUN_COMMAND, ELECT];
