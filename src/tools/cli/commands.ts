import { BREAK } from "./break.ts";
import type { Command } from "./command.ts";
import { completion } from "./completion.ts";
import { DOCTOR } from "./doctor.ts";
import { INSPECT } from "./inspect.ts";
import { LS } from "./ls.ts";
import { RECALL } from "./recall.ts";
import { ELECT } from "./run/elect.ts";
import { RUN_COMMAND } from "./run/run.ts";
import { TOP } from "./top.ts";
import { UI } from "./ui.ts";

/** In the order of the help. */
export const COMMANDS: readonly Command[] = [
  RUN_COMMAND,
  ELECT,
  LS,
  TOP,
  INSPECT,
  BREAK,
  RECALL,
  DOCTOR,
  UI,
  completion(() => COMMANDS),
];
