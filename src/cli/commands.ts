import { ASK } from "./ask.ts";
import type { Command } from "./command.ts";
import { LS } from "./ls.ts";
import { ELECT } from "./run/elect.ts";
import { RUN_COMMAND } from "./run/run.ts";

/** In the order of the help. */
export const COMMANDS: readonly Command[] = [RUN_COMMAND, ELECT, LS, ASK];
