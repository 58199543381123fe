/** An error in one line: its code and reason where it has them, and what it says. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, reason } = error as { code?: unknown; reason?: unknown };
  const head = [code ?? error.name, reason].filter((part) => part !== undefined && part !== null).join(" ");
  return `${head}: ${error.message}`.slice(0, 300);
}
