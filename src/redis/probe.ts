import { connectionLua } from "./lua.generated.ts";
import type { ScriptRunner } from "./script-runner.ts";

/** Publishes to a channel from a script and returns the number of receivers. Rejects when PUBLISH is refused. */
export function publishProbe(commands: ScriptRunner, channel: string, message: string): Promise<number> {
  // In Cluster a key leads the script to the channel's node.
  const keys = commands.isCluster ? [commands.keys.clockOfChannel(channel)] : [];
  return commands.run(connectionLua.probe, keys, [channel, message], Number);
}
