import type { Command } from "./command.ts";
import { RUN_COMMAND } from "./run/run.ts";

/** In the order of the help. */
export const COMMANDS: readonly Command[] = [RUN_COMMAND];
