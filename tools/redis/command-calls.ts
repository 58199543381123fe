/**
 * Calls of each command according to `INFO commandstats`, in lower case; subcommands as Redis names
 * them: `script|load`.
 */
export function commandCalls(info: string): Map<string, number> {
  const counts = new Map<string, number>();
  const line = /^cmdstat_(\S+?):calls=(\d+),.*?(?:rejected_calls=(\d+))?(?:,failed_calls=\d+)?\r?$/gm;
  for (const [, name = "", calls, rejected = 0] of info.matchAll(line)) {
    // `calls` includes those that failed while they ran; `rejected_calls` never began (arity, ACL,
    // BUSY, OOM).
    counts.set(name, Number(calls) + Number(rejected));
  }
  return counts;
}
