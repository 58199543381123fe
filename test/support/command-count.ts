import { commandCalls } from "../../tools/redis/command-calls.ts";

/** Calls by command name in lower case; subcommands as Redis names them: `script|load`. */
type CommandCounts = Record<string, number>;

export interface CommandCount {
  /** The commands since `countCommands()`; names without calls are left out. */
  since(): Promise<CommandCounts>;
  /** EVALSHA + EVAL. */
  scripts(): Promise<number>;
  /** EVALSHA + EVAL + SUBSCRIBE: all commands that a parked waiter may cost. */
  waiting(): Promise<number>;
}

interface InfoClient {
  info(section: string): Promise<string>;
}

/**
 * Counts the commands that a server receives from all its clients, by the difference of two `INFO
 * commandstats`.
 *
 * Exact for commands that only clients send: `evalsha`, `eval`, `subscribe`, `unsubscribe`, … For
 * names that scripts call too (`get`, `set`, `publish`, `time`, …) Redis adds the scripts' calls to
 * the same number. A refused command counts as sent, so an EVALSHA answered NOSCRIPT and the
 * following EVAL count as two.
 */
export async function countCommands(redis: InfoClient): Promise<CommandCount> {
  const before = await readCounts(redis);
  let ownInfos = 0;

  const since = async (): Promise<CommandCounts> => {
    const now = await readCounts(redis);
    // An INFO is counted once it is answered, so this includes the first one and those of earlier
    // since() calls.
    ownInfos += 1;
    now.set("info", (now.get("info") ?? 0) - ownInfos);
    const differences = [...now].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const);
    return Object.fromEntries(differences.filter(([, difference]) => difference !== 0));
  };
  const sum = async (...names: string[]): Promise<number> => {
    const counts = await since();
    return names.reduce((total, name) => total + (counts[name] ?? 0), 0);
  };

  return { since, scripts: () => sum("evalsha", "eval"), waiting: () => sum("evalsha", "eval", "subscribe") };
}

async function readCounts(redis: InfoClient): Promise<Map<string, number>> {
  return commandCalls(await redis.info("commandstats"));
}
