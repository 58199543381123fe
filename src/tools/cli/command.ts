import { type Flags, flag, type Parsed, parse, text } from "./args.ts";
import { Output } from "./output.ts";

/** The flags of every command. */
export const COMMON = {
  redis: text(
    "r",
    "<url>",
    "redis://host:port/db, rediss:// for TLS; several for a Cluster or sentinels, separated by commas. Default: HOLDFAST_REDIS, REDIS_URL, or redis://127.0.0.1:6379",
  ),
  cluster: flag(null, "the address is that of a Redis Cluster (HOLDFAST_CLUSTER=1)"),
  sentinel: text(
    null,
    "<name>",
    "the addresses are those of sentinels; the primary has this name (HOLDFAST_SENTINEL)",
  ),
  prefix: text(
    "p",
    "<text>",
    "prefix of all keys and channels, as the client's option prefix or ioredis's keyPrefix (HOLDFAST_PREFIX)",
  ),
  quiet: flag("q", "print nothing but failures on stderr"),
  verbose: flag("v", "print more on stderr"),
  json: flag(null, "JSON for programs"),
  "no-color": flag(null, "no colours; also with NO_COLOR, or if stdout is not a terminal"),
  help: flag("h", "this text"),
} satisfies Flags;

export type CommonValues = Parsed<typeof COMMON>["values"];

/** One call of a command. */
export interface Call<S extends Flags> extends Parsed<S & typeof COMMON> {
  readonly output: Output;
}

/** A command, for the help and the completion. */
export interface Described {
  readonly name: string;
  readonly summary: string;
  /** After the program's name. */
  readonly usage: readonly string[];
  /** A command line, and its effect. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** Paragraphs after the flags. */
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
