import type { Shown } from "../src/tools/ui/shown.ts";

/** ms between two questions where the browser gets no stream. */
const ASK_EVERY = 3_000;

/** ms without a word of the server, which sends one every 3 s, after which it counts as gone. */
const SILENT = 12_000;
/** ms in which the browser has connected again, where a stream has ended. */
const AGAIN = 3_000;
const GONE = "The server of this page does not answer.";

/**
 * What the server shows of a view, look by look. `lost`: nothing arrives any more, and why. Returns
 * how to stop.
 */
export function follow(
  query: URLSearchParams,
  show: (seen: Shown) => void,
  lost: (why: string) => void,
): () => void {
  const source = new EventSource(`?part=events&${query}`);
  let isOver = false;
  let timer = 0;
  let silence = 0;
  let isBroken = false;
  const heard = (patience: number): void => {
    isBroken = patience === AGAIN;
    clearTimeout(silence);
    silence = setTimeout(() => lost(GONE), patience);
  };
  heard(SILENT);
  source.addEventListener("ping", () => heard(SILENT));
  source.onmessage = ({ data }) => {
    heard(SILENT);
    show(JSON.parse(data) as Shown);
  };
  source.onerror = () => {
    if (isOver) return;
    // It tries again by itself unless it was refused: behind some proxies nothing streams. Each
    // stream ends after some minutes. Each attempt that fails is an error of its own, which must
    // not extend the time.
    if (source.readyState === EventSource.CLOSED) void ask();
    else if (!isBroken) heard(AGAIN);
  };
  const ask = async (): Promise<void> => {
    clearTimeout(silence);
    try {
      const answer = await fetch(`?part=state&${query}`, { signal: AbortSignal.timeout(SILENT) });
      const type = answer.headers.get("content-type") ?? "";
      // What refuses it says why: a login is over, or the page is closed. What stands before it may
      // answer with a page of its own.
      const said = /^application\/json\b/.test(type)
        ? ((await answer.json()) as Shown)
        : /^text\/plain\b/.test(type) || type === ""
          ? await answer.text()
          : `Something else answered in place of the page's server, with status ${answer.status}. Load the page again, and log in if you are asked to.`;
      if (isOver) return;
      if (typeof said === "string") lost(said);
      else show(said);
    } catch {
      if (!isOver) lost(GONE);
    }
    if (!isOver) timer = setTimeout(ask, ASK_EVERY);
  };
  return () => {
    isOver = true;
    source.close();
    clearTimeout(timer);
    clearTimeout(silence);
  };
}
