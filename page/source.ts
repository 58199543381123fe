import type { Shown } from "../src/ui/shown.ts";

/** ms between two questions where the browser gets no stream. */
const ASK_EVERY = 3_000;

/** What the server shows of a view, look by look. `lost`: it is not heard any more. Returns how to stop. */
export function follow(query: URLSearchParams, show: (seen: Shown) => void, lost: () => void): () => void {
  const source = new EventSource(`?part=events&${query}`);
  let isOver = false;
  let timer = 0;
  source.onmessage = ({ data }) => show(JSON.parse(data) as Shown);
  source.onerror = () => {
    if (isOver) return;
    lost();
    // It tries again by itself unless it was refused: behind some proxies nothing streams.
    if (source.readyState === EventSource.CLOSED) timer = setTimeout(ask, ASK_EVERY);
  };
  const ask = async (): Promise<void> => {
    try {
      const answer = await fetch(`?part=state&${query}`);
      if (!answer.ok) throw new Error(String(answer.status));
      const seen = (await answer.json()) as Shown;
      if (!isOver) show(seen);
    } catch {
      if (!isOver) lost();
    }
    if (!isOver) timer = setTimeout(ask, ASK_EVERY);
  };
  return () => {
    isOver = true;
    source.close();
    clearTimeout(timer);
  };
}
