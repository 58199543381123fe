import { orAbort } from "../util/abort.ts";

/** Waits so many ms. Rejects with the signal's reason when it aborts first. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  try {
    await orAbort(
      signal,
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms);
      }),
    );
  } finally {
    clearTimeout(timer);
  }
}
