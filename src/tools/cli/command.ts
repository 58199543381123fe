import { type Flags, flag, type Parsed, parse, text } from "./args.ts";
import { Output } from "./output.ts";

/** What every command takes. */
export const COMMON = {
  redis: text(
    "r",
    "<url>",
    "where Redis is: redis://host:port/db, rediss:// for TLS; several, divided by commas, of a Cluster or of sentinels. Default: HOLDFAST_REDIS, REDIS_URL, or redis://127.0.0.1:6379",
  ),
  cluster: flag(null, "it is a Redis Cluster (HOLDFAST_CLUSTER=1)"),
  sentinel: text(
    null,
    "<name>",
    "the addresses are those of sentinels, which know the primary of this name (HOLDFAST_SENTINEL)",
  ),
  prefix: text("p", "<text>", "stands before all keys, as ioredis's keyPrefix (HOLDFAST_PREFIX)"),
  quiet: flag("q", "say nothing on stderr but what has failed"),
  verbose: flag("v", "say more"),
  json: flag(null, "JSON for programs"),
  "no-color": flag(null, "no colours; so does NO_COLOR, and a stdout that is no terminal"),
  help: flag("h", "this text"),
} satisfies Flags;

export type CommonValues = Parsed<typeof COMMON>["values"];

/** One call of a command. */
export interface Call<S extends Flags> extends Parsed<S & typeof COMMON> {
  readonly output: Output;
}

/** What the help and the completion know of a command. */
export interface Described {
  readonly name: string;
  readonly summary: string;
  /** Behind the program's name. */
  readonly usage: readonly string[];
  /** A command line, and what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** Paragraphs behind the flags. */
  readonly notes?: readonly string[];
  readonly flags: Flags;
}

export interface Command extends Described {
  /** Resolves with the exit code. `help`: prints the command's help. */
  call(argv: readonly string[], help: (command: Command) => void): Promise<number>;
}

/** `run` resolves with the exit code. */
export function command<S extends Flags>(
  described: Described & { readonly flags: S },
  run: (call: Call<S>) => Promise<number>,
): Command {
  const flags = { ...described.flags, ...COMMON };
  const self: Command = {
    ...described,
    call: async (argv, help) => {
      const parsed = parse(flags, argv, `holdfast help ${described.name}`);
      if ((parsed.values as CommonValues).help) {
        help(self);
        return 0;
      }
      return run({ ...parsed, output: new Output(parsed.values as CommonValues) });
    },
  };
  return self;
}
