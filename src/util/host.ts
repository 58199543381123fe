import { hostname } from "node:os";

/**
 * This machine's name, for people; "unknown" where the process may not read it, as under Deno
 * without `--allow-sys`. A missing right to be shown by name must not end a program.
 */
export function hostName(): string {
  try {
    return hostname();
  } catch {
    return "unknown";
  }
}
